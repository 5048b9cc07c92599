// SPDX-License-Identifier: BSD-2-Clause
// The rows of a table, which the stock program keeps in a map. Private to event/.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "usdt/bpf/stock_constants.h"
#include "usdt/bpf_object.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"

namespace usdt::event {

/// Whether some of its keys are stacks.
[[nodiscard]] bool has_stacks(const PlannedTable& table);
/// Returns what a program is loaded with that fills the table.
[[nodiscard]] usdt_table_constants describe_rows(const PlannedTable& table);
/// Sizes the maps for it.
[[nodiscard]] Result<void> size_rows(BpfObject& object, const PlannedTable& table);
/// Behind the load: what new rows are made from.
[[nodiscard]] Result<void> fill_blank_row(const LoadedObject& object, const PlannedTable& table);
/// Returns the maps of a table's rows: sites that are added to a trace have them in common.
[[nodiscard]] std::vector<const char*> maps_of_rows(const PlannedTable& table);

/// Stacks of rows that the kernel's maps do not have any more, by what rows have for keys (usdt_row_stack: number and
/// pid).
using KeptStacks = std::map<std::pair<std::int32_t, std::uint32_t>, std::vector<std::uint64_t>>;

/// Reads what the map has by now, each row once. Exact after all programs are detached; before that the numbers of one
/// row may be those of moments a microsecond apart. Errors: io.
[[nodiscard]] Result<std::vector<TableRow>> read_rows(const LoadedObject& object, const AttachPlan& plan,
                                                      const KeptStacks& kept);

/// Takes those rows out whose keys have the stack of a process for which `ended` is true, and makes room in the maps
/// for others: a process that starts has its code at addresses of its own, and so rows of its own. Stacks that go
/// although a row still has them become `kept` ones. Errors: io.
[[nodiscard]] Result<std::vector<TableRow>> take_rows_of_ended(const LoadedObject& object, const AttachPlan& plan,
                                                               const std::function<bool(std::uint32_t pid)>& ended,
                                                               KeptStacks& kept);

}  // namespace usdt::event
