// SPDX-License-Identifier: BSD-2-Clause
#include "tiny_elf.hpp"

#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "arch/arch.hpp"

namespace usdt::test {
namespace {

struct Bits64 {
  using Ehdr = Elf64_Ehdr;
  using Phdr = Elf64_Phdr;
  using Shdr = Elf64_Shdr;
  using Sym = Elf64_Sym;
  using Rel = Elf64_Rela;
  static constexpr int kClass = ELFCLASS64;
  static constexpr int kRelType = SHT_RELA;
  static constexpr std::uint64_t rel_info(std::uint64_t symbol, std::uint32_t type) {
    return ELF64_R_INFO(symbol, type);
  }
};
struct Bits32 {
  using Ehdr = Elf32_Ehdr;
  using Phdr = Elf32_Phdr;
  using Shdr = Elf32_Shdr;
  using Sym = Elf32_Sym;
  using Rel = Elf32_Rel;
  static constexpr int kClass = ELFCLASS32;
  static constexpr int kRelType = SHT_REL;
  static constexpr std::uint32_t rel_info(std::uint32_t symbol, std::uint32_t type) {
    return ELF32_R_INFO(symbol, type);
  }
};

constexpr std::uint64_t kSegmentSize = 0x1000;
constexpr std::uint64_t kDataOffset = 0x2000;
constexpr std::uint64_t kTablesOffset = 0x3000;

std::uint32_t glob_dat(Machine machine) {
  switch (machine) {
    case Machine::x86_64:
      return R_X86_64_GLOB_DAT;
    case Machine::i386:
      return R_386_GLOB_DAT;
    case Machine::aarch64:
      return R_AARCH64_GLOB_DAT;
    case Machine::riscv64:
      break;
  }
  return R_RISCV_64;
}

template <class Bits>
class Writer {
 public:
  explicit Writer(const TinyElf& elf) : elf_(elf), image_(kTablesOffset, '\0'), names_(1, '\0') {}

  std::string write() {
    std::copy(elf_.text.begin(), elf_.text.end(), image_.begin() + TinyElf::kTextOffset);
    section("", SHT_NULL, 0, {});
    section(".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, {}, TinyElf::kText, TinyElf::kTextOffset, kSegmentSize);
    section(".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, {}, TinyElf::kData, kDataOffset, 0x800);
    section(".got", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, {}, TinyElf::kGot, kDataOffset + 0x800, 0x800);
    section(".comment", SHT_PROGBITS, 0, elf_.comment + '\0');
    symbols_and_relocations();
    return finish();
  }

 private:
  /// Section headers have 9 fields after the name; those given by `bytes` are appended to the image.
  std::uint32_t section(const std::string& name, std::uint32_t type, std::uint64_t flags, const std::string& bytes,
                        std::uint64_t address = 0, std::uint64_t offset = 0, std::uint64_t size = 0) {
    typename Bits::Shdr header{};
    header.sh_name = static_cast<std::uint32_t>(names_.size());
    names_ += name + '\0';
    header.sh_type = type;
    header.sh_flags = static_cast<decltype(header.sh_flags)>(flags);
    header.sh_addr = static_cast<decltype(header.sh_addr)>(address);
    header.sh_offset = static_cast<decltype(header.sh_offset)>(offset != 0 ? offset : image_.size());
    header.sh_size = static_cast<decltype(header.sh_size)>(size != 0 ? size : bytes.size());
    header.sh_addralign = 1;
    image_ += bytes;
    headers_.push_back(header);
    return static_cast<std::uint32_t>(headers_.size() - 1);
  }

  void symbols_and_relocations() {
    std::string strings(1, '\0');
    std::string symbols(sizeof(typename Bits::Sym), '\0');
    std::string relocations;
    const auto add_symbol = [&](const TinySymbol& symbol) {
      typename Bits::Sym entry{};
      entry.st_name = static_cast<std::uint32_t>(strings.size());
      entry.st_info = static_cast<unsigned char>((STB_GLOBAL << 4) | symbol.type);
      entry.st_shndx = symbol.defined ? 2 : SHN_UNDEF;
      entry.st_value = static_cast<decltype(entry.st_value)>(symbol.value);
      strings += symbol.name + '\0';
      append(symbols, entry);
    };
    for (const TinySymbol& symbol : elf_.symbols) add_symbol(symbol);
    for (const TinySlot& slot : elf_.slots) {
      typename Bits::Rel relocation{};
      relocation.r_offset = static_cast<decltype(relocation.r_offset)>(slot.address);
      relocation.r_info = Bits::rel_info(index_of(slot.name), glob_dat(elf_.machine));
      append(relocations, relocation);
    }
    const std::uint32_t table = section(".dynsym", SHT_DYNSYM, SHF_ALLOC, symbols);
    headers_[table].sh_entsize = sizeof(typename Bits::Sym);
    headers_[table].sh_link = section(".dynstr", SHT_STRTAB, SHF_ALLOC, strings);
    const std::uint32_t got = section(".rel.dyn", Bits::kRelType, SHF_ALLOC, relocations);
    headers_[got].sh_entsize = sizeof(typename Bits::Rel);
    headers_[got].sh_link = table;
  }

  [[nodiscard]] std::uint32_t index_of(const std::string& name) const {
    for (std::uint32_t i = 0; i < elf_.symbols.size(); ++i) {
      if (elf_.symbols[i].name == name) return i + 1;
    }
    ADD_FAILURE() << "slot of unknown symbol " << name;
    return 0;
  }

  std::string finish() {
    const std::uint32_t names = section(".shstrtab", SHT_STRTAB, 0, {});
    headers_[names].sh_size = static_cast<decltype(headers_[names].sh_size)>(names_.size());
    image_ += names_;
    image_.resize((image_.size() + 7) / 8 * 8);

    typename Bits::Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = Bits::kClass;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = elf_.program ? ET_EXEC : ET_DYN;
    header.e_machine = arch::for_machine(elf_.machine).elf_machine;
    header.e_flags = arch::for_machine(elf_.machine).abi_flags.value;
    header.e_version = EV_CURRENT;
    header.e_phoff = sizeof header;
    header.e_shoff = static_cast<decltype(header.e_shoff)>(image_.size());
    header.e_ehsize = sizeof header;
    header.e_phentsize = sizeof(typename Bits::Phdr);
    header.e_phnum = 3;
    header.e_shentsize = sizeof(typename Bits::Shdr);
    header.e_shnum = static_cast<std::uint16_t>(headers_.size());
    header.e_shstrndx = static_cast<std::uint16_t>(names);
    std::memcpy(image_.data(), &header, sizeof header);
    const typename Bits::Phdr segments[] = {load(PF_R | PF_X, TinyElf::kText, TinyElf::kTextOffset),
                                            load(PF_R | PF_W, TinyElf::kData, kDataOffset), thread_locals()};
    std::memcpy(image_.data() + sizeof header, segments, sizeof segments);
    for (const auto& each : headers_) append(image_, each);
    return std::move(image_);
  }

  static typename Bits::Phdr load(std::uint32_t flags, std::uint64_t address, std::uint64_t offset) {
    typename Bits::Phdr header{};
    header.p_type = PT_LOAD;
    header.p_flags = flags;
    header.p_vaddr = header.p_paddr = static_cast<decltype(header.p_vaddr)>(address);
    header.p_offset = static_cast<decltype(header.p_offset)>(offset);
    header.p_filesz = header.p_memsz = static_cast<decltype(header.p_filesz)>(kSegmentSize);
    header.p_align = 0x1000;
    return header;
  }

  [[nodiscard]] typename Bits::Phdr thread_locals() const {
    auto header = load(PF_R, TinyElf::kData, kDataOffset);
    header.p_type = PT_TLS;
    header.p_memsz = static_cast<decltype(header.p_memsz)>(elf_.tls_size);
    header.p_align = static_cast<decltype(header.p_align)>(elf_.tls_align);
    return header;
  }

  template <class T>
  static void append(std::string& to, const T& value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  const TinyElf& elf_;
  std::string image_;
  std::string names_;
  std::vector<typename Bits::Shdr> headers_;
};

}  // namespace

std::shared_ptr<const ElfFile> TinyElf::open() const {
  std::string path = testing::TempDir() + "tiny_elf.XXXXXX";
  const int fd = mkstemp(path.data());
  EXPECT_GE(fd, 0) << path;
  const std::string image = machine == Machine::i386 ? Writer<Bits32>(*this).write() : Writer<Bits64>(*this).write();
  EXPECT_EQ(write(fd, image.data(), image.size()), static_cast<ssize_t>(image.size()));
  close(fd);
  auto file = ElfFile::open(path);
  unlink(path.c_str());
  if (!file) {
    ADD_FAILURE() << file.error().message;
    return nullptr;
  }
  return std::make_shared<const ElfFile>(std::move(*file));
}

TinyElf sample_elf(Machine machine) {
  return {.machine = machine,
          .symbols = {{"counter", 0x14010},
                      {"table", 0x14100},
                      {"twice", 0x14020},
                      {"twice", 0x14030},
                      {"per_thread", 0x8, STT_TLS},
                      {"per_thread_twice", 0x10, STT_TLS},
                      {"per_thread_twice", 0x18, STT_TLS},
                      {"per_thread_elsewhere", 0, STT_TLS, false},
                      {"elsewhere", 0, STT_OBJECT, false},
                      {"slotless_elsewhere", 0, STT_OBJECT, false},
                      {"exported", 0x14040},
                      {"_GLOBAL_OFFSET_TABLE_", TinyElf::kGot}},
          .slots = {{"elsewhere", 0x14818}, {"exported", 0x14820}}};
}

}  // namespace usdt::test
