// SPDX-License-Identifier: BSD-2-Clause
#include "descendants.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace usdt_trace {
namespace {

/// The parent of a process that still runs; 0: it has none, has ended, or waits to be reaped.
pid_t parent_of(pid_t pid) {
  const int fd = ::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char buffer[256];  // enough for the name, at most 64 bytes, and the two fields behind it
  const ssize_t size = ::read(fd, buffer, sizeof(buffer));
  ::close(fd);
  if (size <= 0) return 0;
  // "PID (NAME) STATE PPID ..."; the name may hold parentheses, what follows does not.
  std::string_view text(buffer, static_cast<std::size_t>(size));
  const std::size_t name_end = text.rfind(')');
  if (name_end == text.npos || name_end + 4 >= text.size()) return 0;
  if (text[name_end + 2] == 'Z' || text[name_end + 2] == 'X') return 0;
  text.remove_prefix(name_end + 4);
  pid_t parent = 0;
  std::from_chars(text.data(), text.data() + text.size(), parent);
  return parent;
}

std::multimap<pid_t, pid_t> children_by_parent() {
  std::multimap<pid_t, pid_t> all;
  DIR* directory = ::opendir("/proc");
  if (directory == nullptr) return all;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view name = entry->d_name;
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr != name.data() + name.size()) continue;
    if (const pid_t parent = parent_of(pid); parent > 0) all.emplace(parent, pid);
  }
  ::closedir(directory);
  return all;
}

bool runs_our_program(pid_t pid) {
  struct stat ours {
  }, theirs{};
  return ::stat("/proc/self/exe", &ours) == 0 && ::stat(fmt::format("/proc/{}/exe", pid).c_str(), &theirs) == 0 &&
         ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

/// Holds `pid` if it still is a child of `parent`: what is held first and looked at then is what was meant.
std::optional<HeldProcess> hold(pid_t pid, pid_t parent) {
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) return std::nullopt;
  HeldProcess process(fd);
  if (parent_of(pid) != parent || !process.signal(0)) return std::nullopt;
  return process;
}

}  // namespace

HeldProcess::HeldProcess(HeldProcess&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

HeldProcess::~HeldProcess() {
  if (fd_ >= 0) ::close(fd_);
}

bool HeldProcess::signal(int number) const noexcept {
  return ::syscall(SYS_pidfd_send_signal, fd_, number, nullptr, 0) == 0;
}

std::vector<HeldProcess> hold_descendants() {
  const auto children = children_by_parent();
  std::vector<HeldProcess> held;
  std::vector<pid_t> parents{::getpid()};
  while (!parents.empty()) {
    const pid_t parent = parents.back();
    parents.pop_back();
    const auto [first, last] = children.equal_range(parent);
    for (auto child = first; child != last; ++child) {
      if (parent == ::getpid() && runs_our_program(child->second)) continue;
      auto process = hold(child->second, parent);
      if (!process) continue;
      held.push_back(std::move(*process));
      parents.push_back(child->second);
    }
  }
  return held;
}

}  // namespace usdt_trace
