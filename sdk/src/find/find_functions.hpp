// SPDX-License-Identifier: BSD-2-Clause
// The functions of one file that patterns mean. Private to find/.
#pragma once

#include <vector>

#include "usdt/probe_file.hpp"

namespace usdt::find {

/// Adds to `file`, which has its `elf`, the functions that `patterns` mean: by symbol tables, and those inlined by
/// debug information, each with its signature. Nothing found is no error. Errors: stopped; not_supported (files whose
/// code has no addresses yet); invalid_argument (an offset within an instruction).
[[nodiscard]] Result<void> add_functions(const std::vector<FunctionPattern>& patterns, const StopToken& stop,
                                         ProbeFile& file);

}  // namespace usdt::find
