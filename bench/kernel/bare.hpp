// SPDX-License-Identifier: BSD-2-Clause
// What is measured against: the system calls alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sys/unique_fd.hpp"
#include "usdt/kernel.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"

namespace usdt::bench {

/// Functions as the kernel wants them.
struct BareFunctions {
  std::vector<std::string> names;
  std::vector<unsigned long> addresses;
  std::vector<std::uint32_t> btf_ids;
};

/// Programs, links and perf events, in the order they are closed in.
struct BareLinks {
  std::vector<sys::UniqueFd> links;
  std::vector<sys::UniqueFd> programs;
};

/// An empty program on all `functions`: one link, or (perf_kprobe, tracing) one each.
[[nodiscard]] Result<BareLinks> attach_bare(KernelKind kind, Backend backend, const BareFunctions& functions);

}  // namespace usdt::bench
