// SPDX-License-Identifier: BSD-2-Clause
// Inlined copies of functions: their code, and what compilers may have made of them.
#pragma once

#include <vector>

#include "dwarf/debug_info.hpp"
#include "dwarf/function_info.hpp"
#include "elf/code_ways.hpp"
#include "usdt/address.hpp"

namespace usdt::dwarf {

/// The code of an instance, and of the function that it is in (itself, unless it is inlined).
struct InstanceCode {
  VirtAddr entry;  ///< of the function
  std::vector<elf::CodeRange> function;
  std::vector<elf::CodeRange> copy;
};
[[nodiscard]] InstanceCode code_of(const DebugInfo& info, const Instance& instance);

/// Returns whether the compiler may have made one of several inlined copies, of which debug information then tells
/// nothing (LLVM, where branches do the same): by calls that copies of the function make elsewhere in the unit.
[[nodiscard]] bool may_be_merged(const DebugInfo& info, const FunctionInfo& function);

/// Returns whether the compiler may have made several of an inlined copy, as of one in a loop that it unrolled: debug
/// information tells where the first one begins, and as code of the same copy has what is begun elsewhere by the
/// statement that the first begins with.
[[nodiscard]] bool is_repeated(const DebugInfo& info, const FunctionInfo& function, const Instance& instance);

}  // namespace usdt::dwarf
