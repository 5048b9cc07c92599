// SPDX-License-Identifier: BSD-2-Clause
// The rows of a table, which the stock program keeps in a map. Private to event/.
#pragma once

#include <cstdint>
#include <vector>

#include "usdt/bpf/constants.h"
#include "usdt/bpf_object.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"

namespace usdt::event {

/// Whether some of its keys are stacks.
[[nodiscard]] bool has_stacks(const PlannedTable& table);
/// Before the load: sizes the map for the plan's table, and says so in the constants the program will be loaded with.
[[nodiscard]] Result<void> size_rows(BpfObject& object, usdt_stock_constants& constants, const PlannedTable& table);

/// What the map has by now, each row once. Exact after all programs are detached; before that the numbers of one row
/// may be those of moments a microsecond apart. Errors: io.
[[nodiscard]] Result<std::vector<TableRow>> read_rows(const LoadedObject& object, const AttachPlan& plan);

}  // namespace usdt::event
