// SPDX-License-Identifier: BSD-2-Clause
// Which files any process has mapped, and under which roots names may lead to one.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "proc/file_id.hpp"
#include "proc/maps.hpp"

namespace usdt::proc {

/// One look at all processes, a few at a time. Mappings that are made and inherited meanwhile are seen as well:
/// processes that were started since then are looked at, until there are none.
class MappedFiles {
 public:
  enum class Seen : std::uint8_t {
    some,       ///< go on
    all,        ///< of every process
    forbidden,  ///< the caller may not know (CAP_CHECKPOINT_RESTORE, CAP_SYS_ADMIN)
    restless,   ///< processes start faster than they could be looked at
  };
  /// Called with "/proc/PID/root" of one process of all that share a root directory and its mounts.
  using OnRoot = std::function<void(const std::filesystem::path& root)>;

  explicit MappedFiles(OnRoot on_root) : on_root_(std::move(on_root)) {}

  /// Goes on for about so long.
  [[nodiscard]] Seen look(std::chrono::nanoseconds time);
  /// Some process has it mapped, as code or as anything else; or it has the number of what may not be looked at.
  [[nodiscard]] bool has(FileId file) const { return files_.contains(file) || hidden_.contains(file.second); }
  /// Processes that nobody may look into: they may have anything mapped.
  [[nodiscard]] const std::set<pid_t>& unreadable() const noexcept { return unreadable_; }

 private:
  /// False: forbidden.
  [[nodiscard]] bool add(pid_t pid);
  void find_processes();
  void look_at_root(const std::filesystem::path& directory);

  OnRoot on_root_;                             ///< may be none
  std::optional<std::vector<pid_t>> waiting_;  ///< processes; none: it begins
  std::set<pid_t> looked_at_;
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>> known_;  ///< as maps has it
  std::set<FileId> files_;
  std::set<std::uint64_t> hidden_;  ///< inodes that are mapped and cannot be looked at
  std::set<pid_t> unreadable_;
  std::set<std::pair<ino_t, FileId>> roots_;  ///< namespaces of mounts, and directories
  unsigned rounds_ = 0;
};

/// All processes that nobody may look into.
[[nodiscard]] std::set<pid_t> unreadable_processes();

}  // namespace usdt::proc
