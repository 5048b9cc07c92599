// SPDX-License-Identifier: BSD-2-Clause
// Files that may hold probes: resolve_target() finds what a target on a command line means, files_of_process() what a
// process has mapped, files_of_program() a program with its libraries. select() (select.hpp) calls these for patterns.
//     auto files = usdt::files_of_process(4711);
//     for (const usdt::TargetFile& file : *files) auto elf = usdt::ElfFile::open(file.access);
// Threads: any. Files are named, not opened: one may be gone by the time it is opened.
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

/// Names a file that may hold probes. `path` is for people, to read and paste back. `access` is for opening and
/// attaching: a path below /proc for files of another mount namespace and for deleted ones, else equal to `path`.
struct TargetFile {
  std::filesystem::path path;
  std::filesystem::path access;
  bool deleted = false;  ///< unlinked or replaced on disk, still mapped by the process
};

/// Finds a shared library by soname or file name ("libstdc++.so.6", "libpq"), as the dynamic loader would find it:
/// LD_LIBRARY_PATH, /etc/ld.so.cache (glibc's "glibc-ld.so.cache1.1" format), the default directories. Errors:
/// not_found, which names the places looked at.
[[nodiscard]] Result<std::filesystem::path> find_library(std::string_view soname);
/// Finds a program by name along PATH, or by path. Errors: not_found, no_permission (found but not executable).
[[nodiscard]] Result<std::filesystem::path> find_program(std::string_view name);
/// Lists the file at `path` and every library it needs, directly or not (DT_NEEDED with RPATH, RUNPATH and $ORIGIN,
/// LD_LIBRARY_PATH, ld.so.cache, default directories), and those of LD_PRELOAD; for Java the virtual machine, too.
/// Libraries that are not found are left out. A "#!" script stands for its interpreter.
[[nodiscard]] Result<std::vector<TargetFile>> files_of_program(const std::filesystem::path& path);
/// Lists every file that process `pid` has mapped executable, each inode once, the main program first. It works for
/// other mount namespaces, containers, deleted and replaced binaries, memfds, and after the first thread has ended.
/// Errors: not_found (no such process), no_permission.
[[nodiscard]] Result<std::vector<TargetFile>> files_of_process(pid_t pid);
/// Lists the files of every process that may be looked at, each inode once. Processes that end meanwhile, kernel
/// threads and processes of other users are passed over.
[[nodiscard]] Result<std::vector<TargetFile>> files_of_all_processes();
/// Returns whether only later threads of the process are left: then the kernel does not find its memory by `pid`.
[[nodiscard]] bool first_thread_has_ended(pid_t pid);
/// Lists the processes that `pid` started, and those that they started, as long as their parents live: orphans belong
/// to init.
[[nodiscard]] std::vector<pid_t> descendants_of(pid_t pid);
/// Lists the files that a target on a command line means. A target is a path, a glob of paths, a directory (walked,
/// symbolic links to directories not followed), a soname, a program name on PATH, the name of a file that a running
/// process maps, or "*", the files of every running process. In double quotes it has no globs. `progress`, if set, is
/// called with the number of files seen so far during a walk. A directory without ELF files gives an empty list.
/// Errors: not_found (nothing fits), stopped (`stop` was requested during a walk).
[[nodiscard]] Result<std::vector<TargetFile>> resolve_target(std::string_view target,
                                                             const std::function<void(std::size_t)>& progress = {},
                                                             const StopToken& stop = {});

/// Returns whether a target leaves open which files are meant: it is empty, or "*".
[[nodiscard]] bool means_everything(std::string_view target) noexcept;
/// Returns whether `target`, as resolve_target() takes it, means this file of a process: by its path, a path to its
/// inode, a directory above it, its file name or soname ("libpq", "pq"), a program on PATH, or a glob of path or name.
[[nodiscard]] bool target_means(std::string_view target, const TargetFile& file);

}  // namespace v1
}  // namespace usdt
