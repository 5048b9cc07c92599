// SPDX-License-Identifier: BSD-2-Clause
// Finds where the threads of a process have a thread-local variable, for programs in the kernel that read it at a hit.
// Private to the library. Files and memory are whatever their owners put there: all that is read is bounded, and what
// makes no sense is not found.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "usdt/bpf/thread_variable.h"
#include "usdt/discover.hpp"
#include "usdt/result.hpp"

namespace usdt::find {

/// Finds one variable, by its name, in any number of processes. Files are read once. One thread at a time.
class ThreadVariableFinder {
 public:
  /// `library_with`: a symbol by which a library is known that has the variable and may not name it, as stripped files
  /// do not name what they do not export. Then the block of that library's variables is found in its place.
  explicit ThreadVariableFinder(std::string name, std::string library_with = {})
      : name_(std::move(name)), library_with_(std::move(library_with)) {}

  /// Returns where threads of `pid` have the variable, as it is now: a library that comes later may bring it, or
  /// another one. Of several files the program is meant, else the library that was loaded first. A symbol that is not
  /// exported counts, too. Errors: not_found (none of its files has the variable, or the process is gone),
  /// no_permission, not_supported (a library's variable in a process without glibc, and machines whose thread pointer
  /// programs in the kernel do not know), io (the process's list of libraries cannot be read).
  [[nodiscard]] Result<usdt_thread_variable> find(pid_t pid);

 private:
  struct File;
  class Libraries;
  /// Tells a file, and what it was when it was read: device, inode, and when it was changed.
  using Version = std::tuple<std::uint64_t, std::uint64_t, std::int64_t, std::int64_t>;
  static constexpr std::size_t kMostFiles = 4096;  ///< that are remembered,
  static constexpr std::size_t kMostOpen = 64;     ///< and those among them that are open

  /// Null: it cannot be read, or has neither the variable nor a part in finding it.
  [[nodiscard]] std::shared_ptr<const File> file_at(const TargetFile& target);
  [[nodiscard]] std::shared_ptr<const File> read_file(const TargetFile& target) const;

  std::string name_;
  std::string library_with_;
  std::map<Version, std::shared_ptr<const File>> files_;
  std::size_t open_ = 0;
};

}  // namespace usdt::find
