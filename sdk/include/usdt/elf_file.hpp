// SPDX-License-Identifier: BSD-2-Clause
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

/// What kind of ELF file this is, as far as probing goes.
enum class ElfKind : std::uint8_t {
  executable,   ///< ET_EXEC
  dynamic,      ///< ET_DYN: shared object, PIE, static PIE
  debug,        ///< a separate debug file: sections without the code
  relocatable,  ///< ET_REL
  archive,      ///< ar archive of relocatable members
};

/// The probes of one file.
struct ScanResult {
  std::vector<Site> sites;  ///< in file order
  std::vector<ScanWarning> warnings;
  /// Set when the notes came from a separate debug file because the file itself has none.
  std::optional<std::filesystem::path> debug_file;
};

/// Where to look beyond the file itself.
struct OpenOptions {
  /// Directories that hold separate debug files, as GDB's debug-file-directory: `DIR/.build-id/ab/cdef.debug` and
  /// `DIR/path/of/the/file/NAME.debug`. Empty: only beside the file.
  std::vector<std::filesystem::path> debug_dirs = {"/usr/lib/debug"};
  /// Servers are asked, too, by build id, when something is looked for that only a debug file has, and none is there:
  /// those that the environment variable DEBUGINFOD_URLS names, by elfutils' libdebuginfod. Not for scan().
  bool debuginfod = false;
  /// Ends reading early, from another thread: what then returns does so with ErrorKind::stopped. However large the
  /// file, and its debug file, that is within a moment.
  StopToken stop = {};
  /// Ends asking servers, from another thread, within a second: what is on this machine is read all the same.
  StopToken stop_asking = {};
};

/// An open ELF file or ar archive, of any of the three machines, either class, on any host. Reading it needs
/// read permission on the file and nothing else. Move-only; all reading is of one open descriptor, so a file
/// replaced on disk meanwhile cannot mix with it.
class ElfFile {
 public:
  /// Opens `path`. Errors: not_found, no_permission, io; malformed (not an ELF file or archive, truncated
  /// headers), not_supported (another machine, big-endian, not a regular file).
  [[nodiscard]] static Result<ElfFile> open(const std::filesystem::path& path, const OpenOptions& options = {});

  ElfFile(ElfFile&&) noexcept;
  ElfFile& operator=(ElfFile&&) noexcept;
  ~ElfFile();

  /// The path it was opened by.
  [[nodiscard]] const std::filesystem::path& path() const noexcept;
  /// For an archive: of its first ELF member.
  [[nodiscard]] Machine machine() const noexcept;
  /// What kind of file it is.
  [[nodiscard]] ElfKind kind() const noexcept;
  /// GNU build id in lower-case hex, empty where the file has none.
  [[nodiscard]] std::string build_id() const;
  /// The open descriptor, owned by this object. `/proc/self/fd/N` names exactly the inode that was scanned.
  [[nodiscard]] int fd() const noexcept;
  /// True when fstat shows the inode as it was at open (size, mtime, ctime): guards against writes in place.
  [[nodiscard]] bool unchanged() const noexcept;

  /// Every stapsdt note: of all sections named .note.stapsdt, else of the PT_NOTE segments, else of the
  /// separate debug file found by build-id or .gnu_debuglink. Foreign and malformed notes become warnings.
  /// A file without notes is not an error: `sites` is empty.
  [[nodiscard]] Result<ScanResult> scan() const;

 private:
  struct Impl;
  friend struct elf::Inside;
  explicit ElfFile(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace usdt
