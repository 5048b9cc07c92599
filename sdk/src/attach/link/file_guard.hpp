// SPDX-License-Identifier: BSD-2-Clause
// Watches files that have breakpoints. A uprobe belongs to an inode and an offset: once the file is written to, the
// kernel puts it into whatever instruction the offset now falls in, of every process that maps the file from then on.
//
// Three watches, since none sees everything. A read lease (fcntl(2), F_SETLEASE) makes the kernel hold back whoever
// opens the file for writing until the lease is given up: nothing is written before the sites are let go. It wants the
// file's owner or CAP_LEASE, and nobody who has the file open for writing already. inotify(7) tells of writes by
// write(2) and truncate(2) as they happen. The times of a file without a lease, looked at four times a second, tell of
// writes through mappings and of those that another machine does.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "usdt/elf_file.hpp"
#include "usdt/file_change.hpp"
#include "usdt/result.hpp"

namespace usdt::backends {

struct GuardedFile {
  std::shared_ptr<const ElfFile> elf;
  std::filesystem::path path;  ///< where it was opened, to see whether another file takes its place
};

class FileGuard {
 public:
  /// Called in the guard's own thread, at most once for each file and kind. Somebody who opened the file for writing
  /// may be waiting until it returns.
  using OnChange = std::function<void(std::size_t file, FileChangeKind kind)>;

  /// Returns when every file is watched; one that was written to since it was opened is reported before. Errors: limit
  /// (threads, descriptors).
  [[nodiscard]] static Result<FileGuard> start(std::vector<GuardedFile> files, OnChange on_change);

  /// Watches these as well; their numbers go on behind those of the files before. Returns when all of them are watched.
  /// One thread at a time.
  void add(std::vector<GuardedFile> files);
  /// Watches those no more, and keeps nothing of them open. Returns when that is done; nothing is said of them then.
  /// One thread at a time, not within OnChange.
  void forget(std::vector<std::size_t> files);

  FileGuard(FileGuard&&) noexcept;
  FileGuard& operator=(FileGuard&&) noexcept;
  /// Ends the watch; on_change is not called any more.
  ~FileGuard();

 private:
  struct State;
  explicit FileGuard(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace usdt::backends
