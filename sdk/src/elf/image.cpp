// SPDX-License-Identifier: BSD-2-Clause
#include "elf/image.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "arch/arch.hpp"
#include "base/try.hpp"

namespace usdt::elf {
namespace {

// More program headers than this the kernel refuses to load (fs/binfmt_elf.c, load_elf_phdrs: 64 KiB of them).
constexpr std::uint64_t kMaxSegmentBytes = 65536;
// Far above any real object; keeps a sparse file with an absurd count from filling memory.
constexpr std::uint64_t kMaxSections = 1ULL << 20;

/// The fields of Elf32_Ehdr and Elf64_Ehdr that matter, in one width.
struct Header {
  std::uint16_t type, machine, phentsize, phnum, shentsize, shnum, shstrndx;
  std::uint64_t phoff, shoff, entry;
  std::uint32_t flags;
};

template <class Ehdr>
Header decode_header(ByteView raw) noexcept {
  const auto h = load<Ehdr>(raw, 0);
  return {little(h.e_type),      little(h.e_machine), little(h.e_phentsize), little(h.e_phnum),
          little(h.e_shentsize), little(h.e_shnum),   little(h.e_shstrndx),  little(h.e_phoff),
          little(h.e_shoff),     little(h.e_entry),   little(h.e_flags)};
}

template <class Phdr>
Segment decode_segment(ByteView raw, std::uint64_t at) noexcept {
  const auto h = load<Phdr>(raw, at);
  return {little(h.p_type),   little(h.p_flags), little(h.p_offset), little(h.p_vaddr),
          little(h.p_filesz), little(h.p_memsz), little(h.p_align)};
}

template <class Shdr>
Section decode_section(ByteView raw, std::uint64_t at) noexcept {
  const auto h = load<Shdr>(raw, at);
  return {little(h.sh_name),   little(h.sh_type), little(h.sh_flags), little(h.sh_addr),
          little(h.sh_offset), little(h.sh_size), little(h.sh_link),  little(h.sh_info)};
}

/// Reads the headers of one object, table by table.
class ImageReader {
 public:
  ImageReader(const File& file, std::uint64_t start, std::uint64_t size, std::string_view label)
      : file_(file), label_(label) {
    image_.start = start;
    image_.size = size;
  }

  Result<Image> read() {
    TRY(read_header());
    read_first_section();
    TRY(read_segments());
    read_sections();
    read_names();
    return std::move(image_);
  }

 private:
  [[nodiscard]] auto wrong(ErrorKind kind, std::string_view what) const {
    return fail(kind, fmt::format("{}: {}", label_, what));
  }
  void warn(std::uint64_t at, std::string message) {
    image_.warnings.push_back({FileOffset(image_.start + at), std::move(message)});
  }
  [[nodiscard]] Bytes read_bytes(std::uint64_t at, std::uint64_t size) const {
    if (at >= image_.size) return {};
    return file_.bytes(image_.start + at, std::min(size, image_.size - at));
  }
  [[nodiscard]] std::uint64_t section_header_size() const noexcept {
    return image_.is64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
  }
  [[nodiscard]] Section section_at(ByteView raw, std::uint64_t at) const noexcept {
    return image_.is64 ? decode_section<Elf64_Shdr>(raw, at) : decode_section<Elf32_Shdr>(raw, at);
  }

  Result<void> read_header();
  Result<void> check_machine();
  void read_first_section();
  Result<void> read_segments();
  void read_sections();
  void read_names();

  const File& file_;
  std::string_view label_;
  Image image_;
  Header header_{};
  std::optional<Section> first_;  // section 0: holds the counts that do not fit the ELF header
};

Result<void> ImageReader::read_header() {
  const Bytes raw = read_bytes(0, sizeof(Elf64_Ehdr));
  if (raw.size() < EI_NIDENT) {
    return wrong(ErrorKind::malformed, fmt::format("truncated ELF file: {} bytes", image_.size));
  }
  if (raw[EI_DATA] == ELFDATA2MSB) return wrong(ErrorKind::not_supported, "big-endian ELF file");
  if (raw[EI_DATA] != ELFDATA2LSB) {
    return wrong(ErrorKind::malformed, fmt::format("ELF file of unknown byte order (EI_DATA {})", raw[EI_DATA]));
  }
  if (raw[EI_CLASS] != ELFCLASS32 && raw[EI_CLASS] != ELFCLASS64) {
    return wrong(ErrorKind::malformed, fmt::format("ELF file of unknown class (EI_CLASS {})", raw[EI_CLASS]));
  }
  image_.is64 = raw[EI_CLASS] == ELFCLASS64;
  const std::size_t wanted = image_.is64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
  if (raw.size() < wanted) {
    return wrong(ErrorKind::malformed,
                 fmt::format("truncated ELF file: {} bytes, its header alone has {}", image_.size, wanted));
  }
  header_ = image_.is64 ? decode_header<Elf64_Ehdr>(raw) : decode_header<Elf32_Ehdr>(raw);
  image_.type = header_.type;
  image_.entry = header_.entry;
  return check_machine();
}

/// "x86_64, i386, aarch64 and riscv64".
std::string names_of_machines() {
  std::string names;
  for (const arch::Arch* arch : arch::all()) {
    const bool last = arch == arch::all().back();
    names += fmt::format("{}{}", names.empty() ? "" : last ? " and " : ", ", arch->name);
  }
  return names;
}

Result<void> ImageReader::check_machine() {
  const arch::Arch* arch = arch::for_elf_machine(header_.machine);
  if (arch == nullptr) {
    return wrong(ErrorKind::not_supported, fmt::format("ELF file for another machine (e_machine {}); read are {}",
                                                       header_.machine, names_of_machines()));
  }
  image_.machine = arch->machine;
  if (image_.is64 != (arch->word_size == 8)) {
    // x32 and arm64 ILP32: their 4-byte words would be read as something they are not.
    return wrong(ErrorKind::not_supported,
                 fmt::format("ELF{} file for {} (e_machine {}): this ABI is not read", image_.is64 ? 64 : 32,
                             to_string(arch->machine), header_.machine));
  }
  if ((header_.flags & arch->abi_flags.mask) != arch->abi_flags.value) {
    return wrong(ErrorKind::not_supported,
                 fmt::format("ELF file for {} whose flags {:#x} tell another ABI than the one that is read",
                             to_string(arch->machine), header_.flags));
  }
  if (image_.type == ET_CORE) return wrong(ErrorKind::not_supported, "core dump, not a program or library");
  if (image_.type != ET_EXEC && image_.type != ET_DYN && image_.type != ET_REL) {
    return wrong(ErrorKind::not_supported, fmt::format("ELF file of unknown type (e_type {:#x})", image_.type));
  }
  return {};
}

void ImageReader::read_first_section() {
  if (header_.shoff == 0) return;
  if (header_.shentsize != section_header_size()) {
    warn(header_.shoff, fmt::format("section headers at file offset {:#x} have {} bytes each instead of {}: not read",
                                    image_.start + header_.shoff, header_.shentsize, section_header_size()));
    return;
  }
  const Bytes raw = read_bytes(header_.shoff, section_header_size());
  if (raw.size() == section_header_size()) {
    first_ = section_at(raw, 0);
  } else if (header_.shnum != 0) {
    warn(header_.shoff, fmt::format("{} section headers at file offset {:#x} lie beyond the end of the file ({:#x}): "
                                    "truncated?",
                                    header_.shnum, image_.start + header_.shoff, image_.start + image_.size));
  }
}

Result<void> ImageReader::read_segments() {
  std::uint64_t count = header_.phnum;
  if (count == PN_XNUM && first_) count = first_->info;
  if (header_.phoff == 0 || count == 0) return {};
  const std::uint64_t entry = image_.is64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
  if (header_.phentsize != entry) {
    return wrong(ErrorKind::malformed,
                 fmt::format("program headers of {} bytes each instead of {}", header_.phentsize, entry));
  }
  if (count * entry > kMaxSegmentBytes) {
    return wrong(ErrorKind::limit, fmt::format("{} program headers, more than any loader takes", count));
  }
  const Bytes raw = read_bytes(header_.phoff, count * entry);
  if (raw.size() < count * entry) {
    return wrong(ErrorKind::malformed, fmt::format("truncated ELF file: {} program headers at file offset {:#x} reach "
                                                   "beyond its end ({:#x})",
                                                   count, image_.start + header_.phoff, image_.start + image_.size));
  }
  image_.segments.reserve(count);
  for (std::uint64_t at = 0; at < raw.size(); at += entry) {
    image_.segments.push_back(image_.is64 ? decode_segment<Elf64_Phdr>(raw, at) : decode_segment<Elf32_Phdr>(raw, at));
  }
  return {};
}

void ImageReader::read_sections() {
  if (!first_) return;
  const std::uint64_t claimed = header_.shnum != 0 ? header_.shnum : first_->size;
  const std::uint64_t entry = section_header_size();
  const Bytes raw = read_bytes(header_.shoff, std::min(claimed, kMaxSections) * entry);
  const std::uint64_t count = raw.size() / entry;
  if (count < claimed) {
    warn(header_.shoff, fmt::format("{} section headers at file offset {:#x}: only {} could be read", claimed,
                                    image_.start + header_.shoff, count));
  }
  image_.sections.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) image_.sections.push_back(section_at(raw, i * entry));
}

void ImageReader::read_names() {
  if (image_.sections.empty()) return;
  const std::uint64_t index = header_.shstrndx == SHN_XINDEX ? first_->link : header_.shstrndx;
  if (index == SHN_UNDEF) return;
  if (index >= image_.sections.size()) {
    warn(header_.shoff,
         fmt::format("section name table is section {} of {}: names are not known", index, image_.sections.size()));
    return;
  }
  image_.names = section_bytes(file_, image_, image_.sections[index]);
}

}  // namespace

bool Image::is_called(const Section& section, std::string_view wanted) const noexcept {
  const std::string_view all(reinterpret_cast<const char*>(names.data()), names.size());
  if (section.name >= all.size()) return wanted.empty();
  const std::string_view rest = all.substr(section.name);
  return rest.starts_with(wanted) && (rest.size() == wanted.size() || rest[wanted.size()] == '\0');
}

const Section* Image::find(std::string_view wanted) const noexcept {
  const auto found = std::ranges::find_if(sections, [&](const Section& s) { return is_called(s, wanted); });
  return found == sections.end() ? nullptr : &*found;
}

bool Image::is_debug_file() const noexcept {
  if (type == ET_REL) return false;
  constexpr std::uint64_t kCode = SHF_ALLOC | SHF_EXECINSTR;
  bool code_sections = false;
  for (const Section& s : sections) {
    if ((s.flags & kCode) != kCode) continue;
    if (s.type != SHT_NOBITS) return false;
    code_sections = true;
  }
  if (code_sections) return true;
  bool code_segments = false;
  for (const Segment& s : segments) {
    if (s.type != PT_LOAD || (s.flags & PF_X) == 0) continue;
    if (s.filesz != 0) return false;
    code_segments = true;
  }
  return code_segments;
}

Result<Image> read_image(const File& file, std::uint64_t start, std::uint64_t size, std::string_view label) {
  return ImageReader(file, start, size, label).read();
}

Bytes section_bytes(const File& file, const Image& image, const Section& section) {
  if (section.type == SHT_NOBITS || section.offset >= image.size) return {};
  return file.bytes(image.start + section.offset, std::min(section.size, image.size - section.offset));
}

}  // namespace usdt::elf
