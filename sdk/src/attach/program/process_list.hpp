// SPDX-License-Identifier: BSD-2-Clause
// Processes: as BPF programs are told of them (bpf/processes.h), and whether they live. Private to attach/ and event/.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <vector>

#include "usdt/bpf/processes.h"

namespace usdt::backends {

/// A usdt_processes of at most USDT_MAX_PROCESSES thread groups.
[[nodiscard]] inline usdt_processes process_list(const std::vector<pid_t>& pids) {
  usdt_processes list{};
  list.count = static_cast<std::uint32_t>(std::min<std::size_t>(pids.size(), USDT_MAX_PROCESSES));
  std::copy_n(pids.begin(), list.count, list.tgids);
  return list;
}

[[nodiscard]] inline bool has_ended(pid_t pid) noexcept { return ::kill(pid, 0) != 0 && errno == ESRCH; }

}  // namespace usdt::backends
