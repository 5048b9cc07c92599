// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/result.hpp"
#include "usdt/stop.hpp"

namespace usdt {
inline namespace v1 {

/// A file that may hold probes. `path` is what people read and paste back; `access` is what to open and attach,
/// which for files of another mount namespace and for deleted ones is a path below /proc.
struct TargetFile {
  std::filesystem::path path;
  std::filesystem::path access;
  bool deleted = false;  ///< unlinked or replaced on disk, still mapped by the process
};

/// A shared library by soname or file name ("libstdc++.so.6", "libpq"), as the dynamic loader would find it:
/// LD_LIBRARY_PATH, /etc/ld.so.cache (glibc's "glibc-ld.so.cache1.1" format), the default directories.
/// not_found names the places looked at.
[[nodiscard]] Result<std::filesystem::path> find_library(std::string_view soname);
/// A program by name along PATH, or by path. not_found, no_permission (found but not executable).
[[nodiscard]] Result<std::filesystem::path> find_program(std::string_view name);
/// The file at `path` and every library it needs, directly or not (DT_NEEDED with RPATH, RUNPATH and $ORIGIN,
/// LD_LIBRARY_PATH, ld.so.cache, default directories); of Java the virtual machine too. Libraries not found are left
/// out. A "#!" script stands for its interpreter.
[[nodiscard]] Result<std::vector<TargetFile>> files_of_program(const std::filesystem::path& path);
/// Every file process `pid` has mapped executable, each inode once, main program first. Works for other mount
/// namespaces, containers, deleted and replaced binaries, memfds, and where the first thread has ended. not_found: no
/// such process; no_permission.
[[nodiscard]] Result<std::vector<TargetFile>> files_of_process(pid_t pid);
/// The same over every process that may be looked at, each inode once. Processes that end meanwhile, kernel threads and
/// those of other users are passed over.
[[nodiscard]] Result<std::vector<TargetFile>> files_of_all_processes();
/// True where only later threads of the process are left: then the kernel does not find its memory by `pid`.
[[nodiscard]] bool first_thread_has_ended(pid_t pid);
/// The processes that `pid` started, and those they did, as long as their parents live: orphans are init's.
[[nodiscard]] std::vector<pid_t> descendants_of(pid_t pid);
/// What a target on a command line means: a path, a glob of paths, a directory (walked, symbolic links to
/// directories not followed), a soname, a program name on PATH, the name of a file that a running process maps, or "*",
/// the files of every running process. A target in double quotes has no globs. `progress`, if set, is called with the
/// number of files seen so far during a walk. not_found where nothing fits; a directory without ELF files answers with
/// none. stopped: `stop` was requested, from another thread, during a walk.
[[nodiscard]] Result<std::vector<TargetFile>> resolve_target(std::string_view target,
                                                             const std::function<void(std::size_t)>& progress = {},
                                                             const StopToken& stop = {});

/// True for a target that leaves open which files are meant: none, or "*".
[[nodiscard]] bool means_everything(std::string_view target) noexcept;
/// True if `target`, a word resolve_target() would take, means this file of a process: its path, a path to the same
/// inode, a directory above it, its file name or soname ("libpq", "pq"), a program on PATH, or a glob of path or name.
[[nodiscard]] bool target_means(std::string_view target, const TargetFile& file);

}  // namespace v1
}  // namespace usdt
