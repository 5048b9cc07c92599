// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <optional>

#include "usdt/result.hpp"

namespace usdt::sys {

/// A pid namespace as bpf_get_ns_current_pid_tgid() names it.
struct PidNamespace {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
};

/// The one this process is in; nullopt: the initial one, whose pids are the kernel's own. Errors: those of
/// /proc/self/ns/pid.
[[nodiscard]] Result<std::optional<PidNamespace>> nested_pid_namespace();

}  // namespace usdt::sys
