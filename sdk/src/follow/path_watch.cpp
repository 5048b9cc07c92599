// SPDX-License-Identifier: BSD-2-Clause
#include "follow/path_watch.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>
#include <system_error>

namespace usdt::follow {
namespace fs = std::filesystem;

void PathWatch::watch(const std::vector<fs::path>& paths) {
  if (paths.empty()) return;
  inotify_.reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  for (std::size_t number = 0; number < paths.size(); ++number) {
    add(number, paths[number]);
    std::error_code none;
    const fs::path real = fs::canonical(paths[number], none);
    if (!none && real != paths[number]) add(number, real);
  }
}

void PathWatch::add(std::size_t number, const fs::path& path) {
  std::error_code none;
  const fs::path whole = fs::absolute(path, none);
  names_.push_back({number, watch_directory(whole.parent_path()), whole.parent_path(), whole.filename().string()});
}

int PathWatch::watch_directory(const fs::path& directory) const {
  if (!inotify_) return -1;
  return ::inotify_add_watch(inotify_.get(), directory.c_str(),
                             IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
}

std::vector<std::size_t> PathWatch::changed() {
  std::set<std::size_t> numbers;
  alignas(inotify_event) std::array<char, 16384> buffer;
  ssize_t length = 0;
  while ((length = ::read(inotify_.get(), buffer.data(), buffer.size())) > 0) {
    inotify_event event;
    for (ssize_t at = 0; at + static_cast<ssize_t>(sizeof(event)) <= length;
         at += static_cast<ssize_t>(sizeof(event) + event.len)) {
      std::memcpy(&event, buffer.data() + at, sizeof(event));
      const char* text = buffer.data() + at + sizeof(event);
      const std::string_view name(text, event.len > 0 ? ::strnlen(text, event.len) : 0);
      for (Name& each : names_) {
        const bool here = each.directory == event.wd;
        if ((event.mask & IN_Q_OVERFLOW) != 0 || (here && each.name == name)) numbers.insert(each.path);
        if (here && (event.mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED)) != 0) each.directory = -1;
      }
    }
  }
  return {numbers.begin(), numbers.end()};
}

std::vector<std::size_t> PathWatch::unwatched() {
  std::set<std::size_t> numbers;
  for (Name& each : names_) {
    if (each.directory >= 0) continue;
    numbers.insert(each.path);
    each.directory = watch_directory(each.in);
  }
  return {numbers.begin(), numbers.end()};
}

}  // namespace usdt::follow
