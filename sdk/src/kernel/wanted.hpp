// SPDX-License-Identifier: BSD-2-Clause
// Of the kernel's lists of functions, what patterns mean: a trace of a hundred functions need not sort 150,000. Pure.
#pragma once

#include <span>
#include <vector>

#include "kernel/symbol_lists.hpp"
#include "usdt/kernel.hpp"

namespace usdt::kernel {

/// Drops what none of `patterns` means, and nothing that tells more of what one does mean: functions of the same name,
/// other names of the same address.
void keep_wanted(std::span<const KernelPattern> patterns, const ModuleNames& modules, Symbols& symbols,
                 std::vector<Named>& listed);

}  // namespace usdt::kernel
