// SPDX-License-Identifier: BSD-2-Clause
// Kernel functions and raw tracepoints as they are listed.
#pragma once

#include <vector>

#include "flags.hpp"
#include "print.hpp"
#include "usdt/usdt.hpp"

namespace usdt_list {

/// A function that can be attached to, or that cannot and why.
struct ListedFunction {
  usdt::KernelPoint point;
  const usdt::KernelFunction* function = nullptr;  ///< null: refused without a look at it
  std::string module;                              ///< "vmlinux", or the module's name
};

/// What a selection means, those that can be attached to first. `selection` must outlive the result.
[[nodiscard]] std::vector<ListedFunction> list_functions(const usdt::KernelSelection& selection);

/// One line for each: name and typed signature; with verbosity 1 also where it is and where its arguments are, and the
/// refused ones. Aligned on a terminal, tab-separated otherwise.
void print_functions_text(const std::vector<ListedFunction>& functions, int verbosity, usdt::tools::Stream& out);
/// One object for each (docs/json.md).
void print_functions_json(const std::vector<ListedFunction>& functions, usdt::tools::Stream& out);

}  // namespace usdt_list
