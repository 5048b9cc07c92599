// SPDX-License-Identifier: BSD-2-Clause
// What the files of this room share about an open ElfFile.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "elf/file.hpp"
#include "elf/image.hpp"
#include "elf/symbol_tables.hpp"
#include "usdt/elf_file.hpp"

namespace usdt::elf {

/// Everything known about a file once it is open; immutable, so that an ElfFile and its SymbolIndex can share it.
struct OpenedFile {
  std::filesystem::path path;
  File file;
  ElfKind kind;
  Image image;  ///< an archive's: of its first ELF member
  OpenOptions options;
};

/// Collects warnings up to a number people can still read; a hostile section could hold millions.
class Warnings {
 public:
  explicit Warnings(std::vector<ScanWarning>& out) : out_(out) {}
  void add(std::uint64_t file_offset, std::string message);
  /// Goes before every further message: which of several files or members is meant.
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

  static constexpr std::size_t kMax = 256;

 private:
  std::vector<ScanWarning>& out_;
  std::string prefix_;
};

/// One range of bytes that holds notes.
struct NoteRange {
  std::uint64_t offset = 0;   ///< in the image
  std::uint64_t size = 0;     ///< as the header claims
  std::uint64_t align = 4;    ///< of names and descriptors
  std::size_t section = 0;    ///< index of its section header; 0 for a segment
  bool only_stapsdt = false;  ///< a section named .note.stapsdt, where a foreign owner is worth a warning
};

/// Returns the sections that can hold stapsdt notes: all named .note.stapsdt that have bytes; where section names are
/// unknown, all SHT_NOTE sections.
[[nodiscard]] std::vector<NoteRange> stapsdt_sections(const Image& image);
/// The PT_NOTE segments that have bytes.
[[nodiscard]] std::vector<NoteRange> note_segments(const Image& image);
/// The GNU build id in lower-case hex, empty where there is none.
[[nodiscard]] std::string build_id(const File& file, const Image& image);

/// Reads all stapsdt notes of one object as sites with their strings and raw words, until `stop` is requested.
void collect_notes(const File& file, const Image& image, std::vector<Site>& sites, Warnings& warnings,
                   const std::stop_token& stop);
/// Fills in what the main file knows of `sites`: prelink correction, file offsets, bytes, class. `base` is the address
/// of .stapsdt.base, 0 where unknown.
void place_sites(const File& file, const Image& image, std::uint64_t base, std::vector<Site>& sites);

/// One entry of a SHT_REL or SHT_RELA section.
struct Relocation {
  std::uint64_t offset = 0;  ///< in the section it applies to (ET_REL), else an address
  std::uint32_t symbol = 0;  ///< index in the linked symbol table
  std::uint32_t type = 0;
  std::optional<std::uint64_t> addend;  ///< SHT_RELA; else the addend is the word in place
};
/// The entries of `section`, whose bytes are `table`.
[[nodiscard]] std::vector<Relocation> relocations_of(const Image& image, const Section& section, ByteView table);

/// The relocations that fill in the notes of a relocatable object.
class NoteRelocations {
 public:
  NoteRelocations(const File& file, const Image& image, Warnings& warnings);
  /// Applies those of section `section`, whose bytes are `notes`. Returns the offsets in them that were filled in, in
  /// ascending order.
  [[nodiscard]] std::vector<std::uint64_t> apply(std::size_t section, std::span<std::uint8_t> notes);

 private:
  void apply_one(const Section& relocations, const Relocation& relocation, std::span<std::uint8_t> notes,
                 std::vector<std::uint64_t>& filled);

  const Image& image_;
  Warnings& warnings_;
  Claims claims_;
  SymbolTables symbols_;
  std::vector<const Section*> relocations_;  ///< by the section they apply to
};

/// One member of an archive.
struct Member {
  std::string name;
  std::uint64_t start = 0;  ///< file offset of its contents
  std::uint64_t size = 0;   ///< bytes
};
/// Calls `visit` for each member, symbol tables and name tables left out, until it returns false. Returns the warning
/// that describes where the archive breaks off, if it does.
std::optional<ScanWarning> for_each_member(const File& file, const std::function<bool(const Member&)>& visit);
/// True when the file starts as an ELF object / as an ar archive / as a thin archive.
enum class Magic : std::uint8_t { elf, archive, thin_archive, other };
[[nodiscard]] Magic magic_of(const File& file, std::uint64_t at);

/// The separate debug file of `main`.
struct DebugFile {
  std::filesystem::path path;
  File file;
  Image image;
};
/// Looks for it as GDB does ("Debugging Information in Separate Files"): by build id, then by .gnu_debuglink with its
/// CRC. A candidate that is not of the same build is passed over.
[[nodiscard]] std::optional<DebugFile> local_debug_file(const OpenedFile& main);
/// The same, and where `main` was opened so (OpenOptions::debuginfod), servers are asked for what is not there. Errors:
/// not_found; those of fetch_debug_file().
[[nodiscard]] Result<DebugFile> find_debug_file(const OpenedFile& main);
/// The one that `main` carries in its .gnu_debugdata, if any; its path is that of `main`.
[[nodiscard]] std::optional<DebugFile> embedded_debug_file(const OpenedFile& main);
/// How far `main` has been moved (prelink) since `debug` was split off: addresses of the debug file plus this.
[[nodiscard]] std::uint64_t shift_between(const Image& debug, const Image& main) noexcept;

}  // namespace usdt::elf

namespace usdt {
inline namespace v1 {

struct ElfFile::Impl {
  std::shared_ptr<const elf::OpenedFile> opened;
};

}  // namespace v1
}  // namespace usdt

namespace usdt::elf {

/// Gives the stages that read an ElfFile access to the file behind it.
struct Inside {
  [[nodiscard]] static const std::shared_ptr<const OpenedFile>& of(const ElfFile& file) noexcept {
    return file.impl_->opened;
  }
};

}  // namespace usdt::elf
