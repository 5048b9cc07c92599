// SPDX-License-Identifier: BSD-2-Clause
// Which cgroups' processes count, as the stock program sees it. Private to event/.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "usdt/bpf/stock_constants.h"
#include "usdt/result.hpp"

namespace usdt::event {

/// Errors: limit (more than USDT_MAX_CGROUPS), not_supported (no cgroup v2; the tracer sees only a part of the tree,
/// whose depth in the whole it cannot tell).
[[nodiscard]] Result<void> check_cgroups(const std::vector<std::filesystem::path>& cgroups);

/// Returns what a directory is to the program; id 0: it is not there.
[[nodiscard]] usdt_cgroup cgroup_at(const std::filesystem::path& directory);

}  // namespace usdt::event
