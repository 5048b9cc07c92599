// SPDX-License-Identifier: BSD-2-Clause
// What files must be like to be given to libdw.
#include "dwarf/dwarf_file.hpp"

#include <fmt/format.h>
#include <gelf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/no_memory.hpp"
#include "base/try.hpp"
#include "dwarf/budget.hpp"
#include "dwarf/unpack.hpp"

namespace usdt::dwarf {
namespace {

namespace fs = std::filesystem;

/// libelf keeps some 200 bytes for each section that a header claims; real debug files have up to some ten thousand
/// (-ffunction-sections, before linking).
constexpr std::size_t kMostSections = 200'000;
/// A file of at most so many bytes is copied; one that somebody else may change, of more.
constexpr std::uint64_t kLargestCopy = 64ULL << 20;
constexpr std::uint64_t kLargestForeignCopy = 512ULL << 20;
/// A page, so that there are some behind a mapping too.
constexpr std::size_t kZerosBehind = 4096;
/// Bytes that all compressed sections may unpack to, and the most bytes that DEFLATE can make of one.
constexpr std::uint64_t kLargestUnpacked = 8ULL << 30;
constexpr std::uint64_t kBestRatio = 1032;
/// Bytes of abbreviations that units may read in all, besides those for each byte of debug information.
constexpr std::uint64_t kTablesAtFirst = 1U << 20;
/// Bytes that libdw allocates for a file before it reads any of it, and then some.
constexpr std::size_t kWorkOfLibdw = 1U << 16;

/// Bytes of `section` when unpacked; its size if it is not compressed.
std::uint64_t unpacked_size(const elf::File& file, const elf::Image& image, const elf::Section& section) {
  const std::size_t head = image.is64 ? sizeof(Elf64_Chdr) : sizeof(Elf32_Chdr);
  if ((section.flags & SHF_COMPRESSED) == 0 || section.size < head) return section.size;
  const elf::Bytes bytes = file.bytes(image.start + section.offset, head);
  if (bytes.size() < head) return section.size;
  return image.is64 ? elf::little(elf::load<Elf64_Chdr>(bytes, 0).ch_size)
                    : elf::little(elf::load<Elf32_Chdr>(bytes, 0).ch_size);
}

}  // namespace

/// libelf and libdw allocate what headers claim: claims no file can keep are refused before they see them.
Result<void> check_claims(const elf::File& file, const elf::Image& image, const fs::path& path) {
  const auto refuse = [&path](std::string_view what) {
    return fail(ErrorKind::limit, fmt::format("{}: {}: not read as debug information", path.string(), what));
  };
  if (image.sections.size() > kMostSections) return refuse("more than 200000 sections");
  std::uint64_t total = 0;
  for (const elf::Section& section : image.sections) {
    if (section.type == SHT_NOBITS) continue;
    const std::uint64_t size = unpacked_size(file, image, section);
    if ((section.flags & SHF_COMPRESSED) != 0 && size / kBestRatio > section.size)
      return refuse("a compressed section claims to come to more than compression can do");
    if ((section.flags & SHF_COMPRESSED) != 0) total += size;
    if (total > kLargestUnpacked) return refuse("compressed sections of more than 8 GB");
  }
  return {};
}

namespace {

/// libdw keeps abbreviations for each unit, in ten times their size: units of other people's files may all lead to the
/// same ones. Where a compiler or dwz shares them, they are a small part of what the units have.
Result<void> check_tables(const DwarfFile& opened) {
  const DebugSections sections = opened.sections();
  const Budget most(kTablesAtFirst, sections.bytes_of_dies() + sections.abbrev.size());
  const auto total = bytes_of_all_tables(sections, most.left());
  if (total > most.left())
    return fail(ErrorKind::limit, fmt::format("{}: its units read the same abbreviations again and again: not read as "
                                              "debug information",
                                              opened.path.string()));
  return {};
}

}  // namespace

Result<DwarfFile> open_dwarf(const elf::File& file, const elf::Image& image, const fs::path& path,
                             const Prepare& prepare) {
  TRY(check_claims(file, image, path));
  auto opened = open_elf(file, path);
  if (!opened) return opened;
  TRY(unpack_sections(*opened));
  if (prepare) TRY(prepare(*opened));
  opened->dwarf.reset(dwarf_begin_elf(opened->elf.get(), DWARF_C_READ, nullptr));
  if (!opened->dwarf) {
    if (!has_memory_for(kWorkOfLibdw)) return fail(no_memory());
    const char* why = dwarf_errmsg(-1);
    return fail(ErrorKind::malformed,
                fmt::format("{}: debug information cannot be read: {}", path.string(), why ? why : "no reason given"));
  }
  TRY(check_tables(*opened));
  return opened;
}

void Unmap::operator()(char* bytes) const noexcept { ::munmap(bytes, size); }

Result<FileBytes> FileBytes::read(const elf::File& file, const fs::path& path) {
  FileBytes bytes;
  bytes.size_ = file.size();
  const std::size_t with_zeros = bytes.size_ + kZerosBehind;
  const bool may_map = file.is_trusted();  // another could cut it off while it is mapped
  if (!may_map && file.size() > kLargestForeignCopy)
    return fail(ErrorKind::limit, fmt::format("{} can be changed by others, and is too large to be copied ({} MB)",
                                              path.string(), file.size() >> 20));
  if (!may_map || file.size() <= kLargestCopy) {
    bytes.copy_ = std::make_unique<char[]>(with_zeros);
    const std::span all(reinterpret_cast<std::uint8_t*>(bytes.copy_.get()), bytes.size_);
    if (file.read(0, all) != bytes.size_)
      return fail(ErrorKind::changed, fmt::format("{} became shorter while it was read", path.string()));
    return bytes;
  }
  void* room = ::mmap(nullptr, with_zeros, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return fail(os_failure(ErrorKind::limit, path.string() + " cannot be mapped", errno));
  bytes.mapped_ = {static_cast<char*>(room), Unmap{with_zeros}};
  if (::mmap(room, bytes.size_, PROT_READ, MAP_PRIVATE | MAP_FIXED, file.fd(), 0) == MAP_FAILED)
    return fail(os_failure(ErrorKind::io, path.string() + " cannot be mapped", errno));
  return bytes;
}

bool FileBytes::let_headers_change(Elf* elf) const noexcept {
  if (!mapped_) return true;
  GElf_Ehdr head;
  std::size_t count = 0;
  if (gelf_getehdr(elf, &head) == nullptr || elf_getshdrnum(elf, &count) != 0 || head.e_shoff >= size_) return false;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t first = head.e_shoff / page * page;
  const std::size_t end = std::min(size_, static_cast<std::size_t>(head.e_shoff) + count * head.e_shentsize);
  return ::mprotect(mapped_.get() + first, end - first, PROT_READ | PROT_WRITE) == 0;
}

void FileBytes::let_go() const noexcept {
  if (mapped_) ::madvise(mapped_.get(), size_, MADV_DONTNEED);
}

DebugSections sections_in(Elf* elf, std::string_view suffix) {
  DebugSections found;
  const std::pair<std::string_view, SectionBytes*> wanted[] = {
      {".debug_info", &found.info},
      {".debug_types", &found.types},
      {".debug_abbrev", &found.abbrev},
      {".debug_str", &found.str},
      {".debug_line_str", &found.line_str},
      {".debug_addr", &found.addr},
      {".debug_str_offsets", &found.str_offsets},
      {".debug_ranges", &found.ranges},
      {".debug_rnglists", &found.rnglists},
      {".debug_aranges", &found.aranges},
      {".debug_loc", &found.loc},
      {".debug_loclists", &found.loclists},
  };
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return found;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type == SHT_NOBITS) continue;
    const char* text = elf_strptr(elf, names, header.sh_name);
    std::string name(text == nullptr ? "" : text);
    if (name.starts_with(".z")) name.erase(1, 1);
    if (!name.ends_with(suffix)) continue;
    name.resize(name.size() - suffix.size());
    for (const auto& [each, found_bytes] : wanted) {
      if (name != each || !found_bytes->empty()) continue;
      if (const Elf_Data* data = elf_getdata(section, nullptr); data != nullptr && data->d_buf != nullptr)
        *found_bytes = {static_cast<const std::uint8_t*>(data->d_buf), data->d_size};
    }
  }
  return found;
}

bool replace_bytes(Elf_Scn* section, std::span<std::uint8_t> bytes) {
  Elf_Data* const translated = elf_getdata(section, nullptr);
  Elf_Data* const raw = elf_rawdata(section, nullptr);
  if (translated == nullptr || raw == nullptr) return false;
  for (Elf_Data* data : {translated, raw}) {
    data->d_buf = bytes.data();
    data->d_size = bytes.size();
    data->d_type = ELF_T_BYTE;
  }
  return true;
}

DebugSections DwarfFile::sections() const { return sections_in(elf.get(), {}); }

Result<DwarfFile> open_elf(const elf::File& file, const fs::path& path) {
  static const unsigned version = elf_version(EV_CURRENT);
  if (version == EV_NONE) return fail(ErrorKind::not_supported, "libelf is of another version of ELF");
  auto bytes = TRY(FileBytes::read(file, path));
  DwarfFile opened{.path = path, .bytes = std::move(bytes), .changed_sections = {}, .elf = {}, .dwarf = {}};
  opened.elf.reset(elf_memory(opened.bytes.data(), opened.bytes.size()));
  if (opened.elf) return opened;
  const char* why = elf_errmsg(-1);
  return fail(ErrorKind::malformed, fmt::format("{}: {}", path.string(), why ? why : "no ELF file"));
}

}  // namespace usdt::dwarf
