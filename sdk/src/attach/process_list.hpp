// SPDX-License-Identifier: BSD-2-Clause
// Processes as BPF programs are told of them (bpf/processes.h). Private to attach/ and event/.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <array>
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

}  // namespace usdt::backends
