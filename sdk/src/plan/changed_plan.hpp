// SPDX-License-Identifier: BSD-2-Clause
// Plans out of plans: one that is made stays as it is, whoever has a share of it. Pure.
#pragma once

#include <set>

#include "usdt/plan.hpp"

namespace usdt::plan {

/// Returns the plan about hits of other processes.
[[nodiscard]] AttachPlan with_scope(AttachPlan plan, Scope scope);

/// Returns the plan without the open files of these numbers: PlannedFile::machine is then known, and PlannedFile::elf
/// null. Everything else stays, with its numbers.
[[nodiscard]] AttachPlan without_files(AttachPlan plan, const std::set<Index<PlannedFile>>& files);

}  // namespace usdt::plan
