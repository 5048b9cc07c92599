// SPDX-License-Identifier: BSD-2-Clause
#include "proc/thread_group.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string_view>

#include "sys/unique_fd.hpp"

namespace usdt::proc {

pid_t thread_group_of(pid_t thread) {
  const sys::UniqueFd fd(::open(fmt::format("/proc/{}/status", thread).c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> block;  // it is the fourth line, behind a name of at most 64 bytes
  const ssize_t n = fd ? ::read(fd.get(), block.data(), block.size()) : -1;
  if (n <= 0) return 0;
  std::string_view text(block.data(), static_cast<std::size_t>(n));
  // The kernel escapes newlines in the name (proc_task_name()).
  constexpr std::string_view key = "\nTgid:\t";
  const std::size_t at = text.find(key);
  if (at == text.npos) return 0;
  text.remove_prefix(at + key.size());
  pid_t group = 0;
  std::from_chars(text.data(), text.data() + text.size(), group);
  return group;
}

}  // namespace usdt::proc
