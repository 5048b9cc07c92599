// SPDX-License-Identifier: BSD-2-Clause
// The code that a process has mapped, and how to open the very inodes it is from.
#pragma once

#include <sys/types.h>

#include <vector>

#include "proc/maps.hpp"
#include "usdt/discover.hpp"
#include "usdt/result.hpp"

namespace usdt::proc {

struct MappedCode {
  Mapping mapping;
  TargetFile file;  ///< no path: it is of no file ([vdso], what a JIT compiler made)
};

/// Mappings that are believed of one process; by default the kernel lets it have 65530 (sysctl vm.max_map_count).
inline constexpr std::size_t kMostMappings = 1 << 17;

/// Every executable mapping of `pid`, by address. Errors: those of files_of_process(); a process that maps no code is
/// none.
[[nodiscard]] Result<std::vector<MappedCode>> mapped_code(pid_t pid);

}  // namespace usdt::proc
