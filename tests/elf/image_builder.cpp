// SPDX-License-Identifier: BSD-2-Clause
#include "image_builder.hpp"

#include <algorithm>
#include <utility>

namespace usdt::test {
namespace {

template <class T>
std::string raw(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

void pad(std::string& bytes) { bytes.resize((bytes.size() + 3) / 4 * 4); }

}  // namespace

std::string note(std::string_view owner_with_nul, std::uint32_t type, std::string_view desc) {
  std::string out =
      raw(static_cast<std::uint32_t>(owner_with_nul.size())) + raw(static_cast<std::uint32_t>(desc.size())) + raw(type);
  out += owner_with_nul;
  pad(out);
  out += desc;
  pad(out);
  return out;
}

std::string stapsdt_desc(const Probe& probe, bool is64) {
  std::string desc;
  for (const std::uint64_t word : {probe.pc, probe.base, probe.semaphore}) {
    desc += is64 ? raw(word) : raw(static_cast<std::uint32_t>(word));
  }
  for (const std::string_view text : {probe.provider, probe.name, probe.args}) {
    desc += text;
    desc += '\0';
  }
  return desc;
}

std::string stapsdt_note(const Probe& probe, bool is64) {
  return note(std::string_view("stapsdt\0", 8), 3, stapsdt_desc(probe, is64));
}

ImageBuilder& ImageBuilder::segment(std::uint32_t type, std::uint32_t flags, std::uint64_t vaddr, std::string bytes,
                                    std::uint64_t memsz) {
  const std::uint64_t size = memsz != 0 ? memsz : bytes.size();
  segments_.push_back({{}, type, flags, vaddr, std::move(bytes), size});
  return *this;
}

ImageBuilder& ImageBuilder::section(std::string name, std::uint32_t type, std::uint64_t flags, std::uint64_t addr,
                                    std::string bytes) {
  sections_.push_back({std::move(name), type, flags, addr, std::move(bytes), 0});
  return *this;
}

template <class Ehdr, class Phdr, class Shdr>
std::string ImageBuilder::build_as() const {
  Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = is64_ ? ELFCLASS64 : ELFCLASS32;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = type_;
  header.e_machine = machine_;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof(Ehdr);
  header.e_phentsize = sizeof(Phdr);
  header.e_phnum = static_cast<std::uint16_t>(segments_.size());
  header.e_phoff = segments_.empty() ? 0 : sizeof(Ehdr);
  header.e_shentsize = sizeof(Shdr);

  std::string contents;
  const std::size_t start = sizeof(Ehdr) + segments_.size() * sizeof(Phdr);
  std::string program_headers;
  for (const Piece& s : segments_) {
    Phdr h{};
    h.p_type = s.type;
    h.p_flags = static_cast<std::uint32_t>(s.flags);
    h.p_offset = static_cast<decltype(h.p_offset)>(start + contents.size());
    h.p_vaddr = static_cast<decltype(h.p_vaddr)>(s.addr);
    h.p_filesz = static_cast<decltype(h.p_filesz)>(s.bytes.size());
    h.p_memsz = static_cast<decltype(h.p_memsz)>(s.memsz);
    h.p_align = 4;
    contents += s.bytes;
    program_headers += raw(h);
  }
  std::string names(1, '\0');
  std::string section_headers = raw(Shdr{});
  const auto add = [&](const Piece& s) {
    Shdr h{};
    h.sh_name = static_cast<std::uint32_t>(names.size());
    names += s.name + '\0';
    h.sh_type = s.type;
    h.sh_flags = static_cast<decltype(h.sh_flags)>(s.flags);
    h.sh_addr = static_cast<decltype(h.sh_addr)>(s.addr);
    h.sh_offset = static_cast<decltype(h.sh_offset)>(start + contents.size());
    const std::string& bytes = s.name == ".shstrtab" ? names : s.bytes;
    h.sh_size = static_cast<decltype(h.sh_size)>(bytes.size());
    contents += bytes;
    pad(contents);
    section_headers += raw(h);
  };
  if (!sections_.empty()) {
    std::ranges::for_each(sections_, add);
    add({".shstrtab", SHT_STRTAB, 0, 0, {}, 0});
    header.e_shnum = static_cast<std::uint16_t>(sections_.size() + 2);
    header.e_shstrndx = static_cast<std::uint16_t>(sections_.size() + 1);
    header.e_shoff = static_cast<decltype(header.e_shoff)>(start + contents.size());
  }
  return raw(header) + program_headers + contents + section_headers;
}

std::string ImageBuilder::build() const {
  return is64_ ? build_as<Elf64_Ehdr, Elf64_Phdr, Elf64_Shdr>() : build_as<Elf32_Ehdr, Elf32_Phdr, Elf32_Shdr>();
}

std::string library_with(std::string notes) {
  return ImageBuilder()
      .segment(PT_LOAD, PF_R | PF_X, 0x1000, std::string(16, '\x90'))
      .segment(PT_LOAD, PF_R | PF_W, 0x3000, std::string(8, '\0'))
      .section(".note.stapsdt", SHT_NOTE, 0, 0, std::move(notes))
      .section(".stapsdt.base", SHT_PROGBITS, SHF_ALLOC, 0x2000, std::string(1, '\0'))
      .build();
}

}  // namespace usdt::test
