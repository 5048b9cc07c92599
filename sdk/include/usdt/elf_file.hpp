// SPDX-License-Identifier: BSD-2-Clause
// An ELF file or archive and its USDT probes: ElfFile::open() opens it, ElfFile::scan() reads all sites, and
// ElfFile::unchanged() tells whether it was written to since.
//     auto file = usdt::ElfFile::open("/usr/bin/python3");
//     if (!file) return fail(file.error());
//     auto scan = file->scan();
//     for (const usdt::Site& site : scan->sites) print(site.provider, site.name, site.args_text);
// Threads: an open file does not change, so that several threads may call its const functions at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "usdt/machine.hpp"
#include "usdt/probe.hpp"
#include "usdt/result.hpp"
#include "usdt/stop.hpp"

namespace usdt::elf {
struct Inside;
}  // namespace usdt::elf

namespace usdt {
inline namespace v1 {

/// Tells kinds of ELF files apart, as far as probing goes.
enum class ElfKind : std::uint8_t {
  executable,   ///< ET_EXEC
  dynamic,      ///< ET_DYN: shared object, PIE, static PIE
  debug,        ///< a separate debug file: sections without the code
  relocatable,  ///< ET_REL
  archive,      ///< ar archive of relocatable members
};

/// Holds the probes of one file.
struct ScanResult {
  std::vector<Site> sites;  ///< in file order
  std::vector<ScanWarning> warnings;
  /// The separate debug file that the notes came from, because the file itself has none; nothing: they are its own.
  std::optional<std::filesystem::path> debug_file;
};

/// Says where to look beyond the file itself, and when to stop.
struct OpenOptions {
  /// Directories that hold separate debug files, as GDB's debug-file-directory: `DIR/.build-id/ab/cdef.debug` and
  /// `DIR/path/of/the/file/NAME.debug`. Empty: debug files are looked for beside the file alone.
  std::vector<std::filesystem::path> debug_dirs = {"/usr/lib/debug"};
  /// Whether servers are asked by build id for a debug file that is needed and not here: those that the environment
  /// variable DEBUGINFOD_URLS names, by elfutils' libdebuginfod. scan() never asks.
  bool debuginfod = false;
  /// Ends reading early, from another thread: functions that are reading return ErrorKind::stopped within a moment,
  /// however large the file and its debug file are.
  StopToken stop = {};
  /// Ends the asking of servers, from another thread, within a second. Files on this machine are read regardless.
  StopToken stop_asking = {};
};

/// Reads an ELF file or ar archive, of any of the four machines, either class, on any host. It needs read permission
/// on the file and nothing else. Move-only. All reading is of one open descriptor, so that a file that takes its place
/// on disk meanwhile cannot mix with it.
class ElfFile {
 public:
  /// Opens `path` and reads its headers. Errors: not_found, no_permission, io; malformed (not an ELF file or archive,
  /// truncated headers), not_supported (another machine, big-endian, not a regular file).
  [[nodiscard]] static Result<ElfFile> open(const std::filesystem::path& path, const OpenOptions& options = {});

  ElfFile(ElfFile&&) noexcept;
  ElfFile& operator=(ElfFile&&) noexcept;
  ~ElfFile();

  /// Returns the path it was opened by.
  [[nodiscard]] const std::filesystem::path& path() const noexcept;
  /// Returns the machine the file was built for; for an archive the machine of its first ELF member.
  [[nodiscard]] Machine machine() const noexcept;
  /// Returns the kind of file it is.
  [[nodiscard]] ElfKind kind() const noexcept;
  /// Returns the GNU build id in lower-case hexadecimal; empty: the file has none.
  [[nodiscard]] std::string build_id() const;
  /// Returns the open descriptor, which this object owns. `/proc/self/fd/N` names exactly the inode that was scanned.
  [[nodiscard]] int fd() const noexcept;
  /// Returns whether the inode is as it was at open by fstat(2): false after a write in place, not by losing its name.
  [[nodiscard]] bool unchanged() const noexcept;
  /// Returns true if nobody has written to the file since, although it may have other names, owners or permissions.
  [[nodiscard]] bool is_unwritten() const noexcept;

  /// Reads every stapsdt note: of all sections named .note.stapsdt, else of the PT_NOTE segments, else of the separate
  /// debug file found by build id or .gnu_debuglink. Foreign and malformed notes become warnings. A file without notes
  /// is no error: `sites` is empty. Errors: stopped (OpenOptions::stop), limit (memory).
  [[nodiscard]] Result<ScanResult> scan() const;

 private:
  struct Impl;
  friend struct elf::Inside;
  explicit ElfFile(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace usdt
