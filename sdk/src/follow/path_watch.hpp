// SPDX-License-Identifier: BSD-2-Clause
// Files by name: whether there is another one of that name. Private to follow/.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "sys/unique_fd.hpp"

namespace usdt::follow {

/// inotify(7) on the directories of paths, and of where their symbolic links lead.
class PathWatch {
 public:
  /// Watches `paths`, which changed() and unwatched() return by their positions.
  void watch(const std::vector<std::filesystem::path>& paths);

  /// Readable when something happened; below 0: there is no inotify, or nothing to watch.
  [[nodiscard]] int fd() const noexcept { return inotify_.get(); }
  /// Paths something happened to; all of them where events were lost. Each once.
  [[nodiscard]] std::vector<std::size_t> changed();
  /// Returns the paths that cannot be watched, since their directory is not there: to be looked at now and then.
  [[nodiscard]] std::vector<std::size_t> unwatched();

 private:
  struct Name {
    std::size_t path;  ///< number
    int directory;     ///< inotify's; below 0: not watched
    std::filesystem::path in;
    std::string name;
  };
  void add(std::size_t number, const std::filesystem::path& path);
  [[nodiscard]] int watch_directory(const std::filesystem::path& directory) const;

  std::vector<Name> names_;
  sys::UniqueFd inotify_;
};

}  // namespace usdt::follow
