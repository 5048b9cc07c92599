// SPDX-License-Identifier: BSD-2-Clause
// Costs of hits in files: the kernel's way to handle a hit of each point, and nanoseconds as they were measured.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "usdt/cost.hpp"
#include "usdt/elf_file.hpp"
#include "usdt/explanation.hpp"
#include "usdt/kernel_facts.hpp"
#include "usdt/question.hpp"
#include "usdt/question_plan.hpp"

namespace usdt::session {

/// The cost of points in files, by file and address.
using SiteCosts = std::map<std::pair<const ElfFile*, std::uint64_t>, SiteCost>;
/// Returns the costs of all points that were found, of both ends of spans.
[[nodiscard]] SiteCosts find_costs(const FoundPoints& found, const KernelFacts& kernel, const Question& question);

/// Returns the nanoseconds that a hit of that cost adds to the program where `values` are read, and recorded if
/// `recorded`: a sum of the medians of docs/results/hit.md, in two digits, which are all that is known.
[[nodiscard]] unsigned estimate_hit(CostClass cost, const std::vector<ExplainedValue>& values, bool recorded);

}  // namespace usdt::session
