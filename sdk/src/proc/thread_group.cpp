// SPDX-License-Identifier: BSD-2-Clause
#include "proc/thread_group.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "sys/read.hpp"

namespace usdt::proc {

pid_t thread_group_of(pid_t thread) {
  // It is the fourth line, behind a name of at most 64 bytes.
  const auto status = sys::read_text(fmt::format("/proc/{}/status", thread), 1024);
  if (!status) return 0;
  std::string_view text = *status;
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
