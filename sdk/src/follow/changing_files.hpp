// SPDX-License-Identifier: BSD-2-Clause
// Files that changed while they were looked at, or attached: a build may take its time to write one. Private to
// follow/.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "follow/file_looks.hpp"
#include "usdt/discover.hpp"
#include "usdt/follow.hpp"

namespace usdt::follow {

/// The way in which a file was found.
struct FoundBy {
  FollowKind kind = FollowKind::file;
  pid_t pid = 0;
  std::uint64_t time = 0;
  TargetFile file = {};
};

class ChangingFiles {
 public:
  void add(FoundBy found) {
    if (files_.size() >= kMost) return;
    std::string access = found.file.access.native();
    files_.insert_or_assign(std::move(access), Changing{std::move(found), {}, 0});
  }

  /// Returns the files that have been unchanged at kLooks calls in a row, and forgets them, as well as files that have
  /// gone. To be called now and then.
  [[nodiscard]] std::vector<FoundBy> at_rest() {
    std::vector<FoundBy> done;
    for (auto each = files_.begin(); each != files_.end();) {
      Changing& file = each->second;
      const auto now = state_of(file.found.file);
      file.looks = file.last == now ? file.looks + 1 : 1;
      file.last = now;
      const bool rests = now && file.looks >= kLooks;
      if (rests) done.push_back(std::move(file.found));
      each = rests || !now ? files_.erase(each) : std::next(each);
    }
    return done;
  }

 private:
  using State = std::tuple<FileId, off_t, std::int64_t>;  ///< which file, its size and ctime
  struct Changing {
    FoundBy found;
    std::optional<State> last;
    unsigned looks = 0;
  };
  static std::optional<State> state_of(const TargetFile& file) noexcept {
    struct stat st {};
    if (::stat(file.access.c_str(), &st) != 0) return std::nullopt;
    return State(FileId(st.st_dev, st.st_ino), st.st_size, change_time(st));
  }
  static constexpr std::size_t kMost = 1024;
  static constexpr unsigned kLooks = 2;
  std::map<std::string, Changing> files_;  ///< by the path they are opened by
};

}  // namespace usdt::follow
