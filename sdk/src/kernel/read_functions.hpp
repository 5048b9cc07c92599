// SPDX-License-Identifier: BSD-2-Clause
// The functions of the kernel and its modules, put together from the kernel's lists.
#pragma once

#include <span>

#include "kernel/merge.hpp"
#include "kernel/module_types.hpp"
#include "kernel/source_texts.hpp"
#include "usdt/kernel.hpp"

namespace usdt::kernel {

/// Functions with the numbers of their types. Their names are views of `texts` and `types` of read_functions().
struct ReadFunctions {
  FunctionList list = {};
  bool any = false;           ///< there are some, whether or not a pattern means them
  bool knows_ftrace = false;  ///< what ftrace can trace was read: only then KernelFunction::ftrace says anything
};

/// Reads the functions that `patterns` mean; without patterns, all. What cannot be read is in texts.missing().
[[nodiscard]] ReadFunctions read_functions(SourceTexts& texts, const ModuleTypes& types,
                                           std::span<const KernelPattern> patterns);

}  // namespace usdt::kernel
