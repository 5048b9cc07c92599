// SPDX-License-Identifier: BSD-2-Clause
// Numbers that debug information says callers pass for a parameter that has no place. Private to locate/.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "dwarf/debug_state.hpp"
#include "locate/entries.hpp"

namespace usdt::locate {

/// The different numbers that callers pass for one parameter.
class NumbersOfParameter {
 public:
  void add(std::uint64_t number);
  /// Whether callers pass other numbers than this one. Where they pass very many, that is not looked at.
  [[nodiscard]] bool contradict(std::uint64_t number) const noexcept;

 private:
  std::vector<std::uint64_t> numbers_;
};
/// By the declaration of the parameter.
using PassedNumbers = std::unordered_map<const void*, NumbersOfParameter>;

/// Reads the numbers that calls in functions of `unit` pass for parameters that have no place.
[[nodiscard]] PassedNumbers numbers_passed_in(DebugState& info, Dwarf_Die unit);

/// Whether an operation is a number.
[[nodiscard]] bool states_number(const Dwarf_Op& op) noexcept;
/// Returns the number that an expression is; nothing: it is something else.
[[nodiscard]] std::optional<std::uint64_t> stated_number(std::span<const Dwarf_Op> expression) noexcept;

}  // namespace usdt::locate
