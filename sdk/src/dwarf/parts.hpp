// SPDX-License-Identifier: BSD-2-Clause
// How much of a function its instances have: compilers split functions, and give each piece the function's own name.
// Private to dwarf/.
#pragma once

#include <elfutils/libdw.h>

#include <optional>
#include <unordered_set>

#include "dwarf/debug_info.hpp"
#include "dwarf/debug_state.hpp"

namespace usdt::dwarf {

/// Tells the pieces of the functions of one file. Sources: what GCC 12 and 16, Clang 14 and 21 write
/// (tests/live/pieces).
class Parts {
 public:
  explicit Parts(DebugState& state) : state_(state) {}

  /// How much of `function` the instance `die` has, which is in `scope`, as far as that is known at once.
  [[nodiscard]] FunctionPart part_of(const FunctionInfo& function, const Instance& instance, Dwarf_Die die,
                                     const std::optional<Dwarf_Die>& scope);

  /// Once all instances are known: Clang's inlined copies are pieces where what they are copies of is one.
  void finish(FunctionInfo& function) const;

 private:
  [[nodiscard]] FunctionPart part_of_own_code(const FunctionInfo& function, const Instance& instance, Dwarf_Die die);

  DebugState& state_;
  std::unordered_set<const void*> coroutine_pieces_;  ///< declarations whose own code goes on with a coroutine
};

}  // namespace usdt::dwarf
