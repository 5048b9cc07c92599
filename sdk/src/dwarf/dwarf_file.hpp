// SPDX-License-Identifier: BSD-2-Clause
// One file with debug information, open in libdw. Private to dwarf/.
#pragma once

#include <elfutils/libdw.h>
#include <libelf.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "dwarf/unit_reader.hpp"
#include "elf/elf_impl.hpp"
#include "usdt/result.hpp"

namespace usdt::dwarf {

struct ElfEnd {
  void operator()(Elf* elf) const noexcept { elf_end(elf); }
};
struct DwarfEnd {
  void operator()(Dwarf* dwarf) const noexcept { dwarf_end(dwarf); }
};
using ElfHandle = std::unique_ptr<Elf, ElfEnd>;
using DwarfHandle = std::unique_ptr<Dwarf, DwarfEnd>;

struct Unmap {
  std::size_t size = 0;
  void operator()(char* bytes) const noexcept;
};

/// The bytes of a file, with zeros behind them: libdw takes some strings without a look at where their section ends
/// (0.188: DW_FORM_string, .debug_line_str; tests/fuzz found it), and so ends within this memory whatever is in the
/// file.
class FileBytes {
 public:
  /// Copies a file, so that nobody can cut it off under us (SIGBUS). A large one is mapped instead, and as much of it
  /// is read as is asked, where only root and who runs this can change it. Errors: io; limit (a large one of others);
  /// changed (shorter than when it was opened).
  [[nodiscard]] static Result<FileBytes> read(const elf::File& file, const std::filesystem::path& path);

  [[nodiscard]] char* data() const noexcept { return mapped_ ? mapped_.get() : copy_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Lets the section headers be written to that `elf` has of it, which is our copy of them. False: that cannot be.
  [[nodiscard]] bool let_headers_change(Elf* elf) const noexcept;
  /// Releases the memory of a mapped file's pages, until they are read again.
  void let_go() const noexcept;

 private:
  std::unique_ptr<char[]> copy_;
  std::unique_ptr<char, Unmap> mapped_;
  std::size_t size_ = 0;
};

/// One file, open in libdw; `dwarf` is null where only its ELF sections are wanted.
struct DwarfFile {
  std::filesystem::path path;
  FileBytes bytes;                                               ///< what the handles read
  std::vector<std::vector<std::uint8_t>> changed_sections = {};  ///< and in place of sections of it
  ElfHandle elf;
  DwarfHandle dwarf;

  /// Its sections as libdw has them: unpacked, if they are compressed.
  [[nodiscard]] DebugSections sections() const;
};

/// The sections of debug information whose names end with `suffix` (".dwo").
[[nodiscard]] DebugSections sections_in(Elf* elf, std::string_view suffix);

/// Puts bytes, which stay where they are, in the place of a section's. libdw looks at those of elf_getdata() (0.188) or
/// of elf_rawdata() (0.192): both are these then. False: the section cannot be read.
[[nodiscard]] bool replace_bytes(Elf_Scn* section, std::span<std::uint8_t> bytes);

/// Refuses what makes libelf and libdw allocate more than any real file has. Errors: limit.
[[nodiscard]] Result<void> check_claims(const elf::File& file, const elf::Image& image,
                                        const std::filesystem::path& path);

/// The ELF sections of `file`. Errors: those of FileBytes::read(), malformed.
[[nodiscard]] Result<DwarfFile> open_elf(const elf::File& file, const std::filesystem::path& path);

/// The same with its debug information; `prepare` is called with it before libdw begins. Errors: also limit (claims of
/// sizes that no file can keep), and those of `prepare`.
using Prepare = std::function<Result<void>(DwarfFile&)>;
[[nodiscard]] Result<DwarfFile> open_dwarf(const elf::File& file, const elf::Image& image,
                                           const std::filesystem::path& path, const Prepare& prepare = {});

}  // namespace usdt::dwarf
