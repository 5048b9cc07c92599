// SPDX-License-Identifier: BSD-2-Clause
// Small ELF files made byte by byte, so that tests can make every one of their claims a lie.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace usdt::test {

/// The bytes of one note, padded to 4.
[[nodiscard]] std::string note(std::string_view owner_with_nul, std::uint32_t type, std::string_view desc);

/// What a stapsdt note says.
struct Probe {
  std::uint64_t pc = 0;
  std::uint64_t base = 0;
  std::uint64_t semaphore = 0;
  std::string_view provider = "prov";
  std::string_view name = "name";
  std::string_view args = "8@%rdi";
};
/// A descriptor of three words and three strings.
[[nodiscard]] std::string stapsdt_desc(const Probe& probe, bool is64 = true);
[[nodiscard]] std::string stapsdt_note(const Probe& probe, bool is64 = true);

/// An ELF file of a few segments and sections. Each piece of contents is stored once, in the order of the calls.
class ImageBuilder {
 public:
  explicit ImageBuilder(bool is64 = true, std::uint16_t machine = EM_X86_64, std::uint16_t type = ET_DYN)
      : is64_(is64), machine_(machine), type_(type) {}

  /// `memsz` 0: as large as `bytes`.
  ImageBuilder& segment(std::uint32_t type, std::uint32_t flags, std::uint64_t vaddr, std::string bytes,
                        std::uint64_t memsz = 0);
  ImageBuilder& section(std::string name, std::uint32_t type, std::uint64_t flags, std::uint64_t addr,
                        std::string bytes);
  [[nodiscard]] std::string build() const;

 private:
  struct Piece {
    std::string name;  // sections only
    std::uint32_t type;
    std::uint64_t flags;
    std::uint64_t addr;
    std::string bytes;
    std::uint64_t memsz;
  };
  template <class Ehdr, class Phdr, class Shdr>
  [[nodiscard]] std::string build_as() const;

  bool is64_;
  std::uint16_t machine_;
  std::uint16_t type_;
  std::vector<Piece> segments_;
  std::vector<Piece> sections_;
};

/// An x86-64 library with code of nops at 0x1000 (16 bytes), data at 0x3000 (8 bytes) and `notes` as its one
/// .note.stapsdt, which is section 1.
[[nodiscard]] std::string library_with(std::string notes);

/// Lets `change` edit the ELF header (ELF64 unless said otherwise) / a section header / a program header of an ELF64
/// `image` in place.
template <class Ehdr = Elf64_Ehdr, class Change>
void edit_header(std::string& image, Change&& change) {
  Ehdr header;
  std::memcpy(&header, image.data(), sizeof header);
  change(header);
  std::memcpy(image.data(), &header, sizeof header);
}
template <class Change>
void edit_section(std::string& image, std::size_t index, Change&& change) {
  Elf64_Ehdr header;
  std::memcpy(&header, image.data(), sizeof header);
  char* at = image.data() + header.e_shoff + index * sizeof(Elf64_Shdr);
  Elf64_Shdr section;
  std::memcpy(&section, at, sizeof section);
  change(section);
  std::memcpy(at, &section, sizeof section);
}
template <class Change>
void edit_segment(std::string& image, std::size_t index, Change&& change) {
  Elf64_Ehdr header;
  std::memcpy(&header, image.data(), sizeof header);
  char* at = image.data() + header.e_phoff + index * sizeof(Elf64_Phdr);
  Elf64_Phdr segment;
  std::memcpy(&segment, at, sizeof segment);
  change(segment);
  std::memcpy(at, &segment, sizeof segment);
}

}  // namespace usdt::test
