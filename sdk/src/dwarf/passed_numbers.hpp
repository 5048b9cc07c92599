// SPDX-License-Identifier: BSD-2-Clause
// Numbers that callers pass for a parameter that has no place. Private to dwarf/.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "dwarf/die.hpp"

namespace usdt::dwarf {

/// Different numbers that callers pass for one parameter, as far as they pass numbers.
struct NumbersOfParameter {
  static constexpr std::size_t kMost = 64;  ///< if there are so many, more of them are not looked at
  std::vector<std::uint64_t> numbers;

  void add(std::uint64_t number);
  /// Whether callers are known to pass numbers, and `number` is none of them.
  [[nodiscard]] bool contradict(std::uint64_t number) const noexcept;
};
/// By the parameter's declaration.
using PassedNumbers = std::unordered_map<const void*, NumbersOfParameter>;

/// Reads what the calls in functions of `unit` pass (DWARF 5, 3.4.2: DW_AT_call_parameter, DW_AT_call_value).
[[nodiscard]] PassedNumbers passed_numbers(Dwarf_Die unit, const StopToken& stop, Budget& budget);

/// Returns the number that an expression is; nothing: it is something else.
[[nodiscard]] std::optional<std::uint64_t> stated_number(std::span<const Dwarf_Op> expression) noexcept;

}  // namespace usdt::dwarf
