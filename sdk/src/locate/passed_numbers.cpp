// SPDX-License-Identifier: BSD-2-Clause
#include "locate/passed_numbers.hpp"

#include <algorithm>
#include <array>

#include "dwarf/calls.hpp"
#include "dwarf/debug_state.hpp"
#include "dwarf/die.hpp"
#include "locate/operation.hpp"

namespace usdt::locate {
namespace {

/// Whether both are one number of 1, 2, 4 or 8 bytes, whatever it was extended by.
bool is_same_number(std::uint64_t a, std::uint64_t b) noexcept {
  for (const unsigned bits : std::array{8U, 16U, 32U}) {
    const auto fits = [bits](std::uint64_t number) {
      const auto value = static_cast<std::int64_t>(number);
      return value >= -(std::int64_t{1} << (bits - 1)) && value < std::int64_t{1} << bits;
    };
    if (fits(a) && fits(b)) return ((a ^ b) & ((std::uint64_t{1} << bits) - 1)) == 0;
  }
  return a == b;
}

/// Numbers that are kept of one parameter.
constexpr std::size_t kMostNumbers = 64;

/// Adds the number that `die`, a parameter of a call, says is passed (DWARF 5, 3.4.2).
void add_number(Dwarf_Die die, PassedNumbers& found) {
  const bool old = dwarf_tag(&die) == DW_TAG_GNU_call_site_parameter;
  const auto parameter = reference(own_attribute(die, old ? DW_AT_abstract_origin : DW_AT_call_parameter));
  auto value = own_attribute(die, old ? DW_AT_GNU_call_site_value : DW_AT_call_value);
  Dwarf_Op* expression = nullptr;
  std::size_t count = 0;
  if (!parameter || !value || dwarf_getlocation(&*value, &expression, &count) != 0) return;
  if (const auto number = stated_number({expression, count})) found[origin_of(*parameter).addr].add(*number);
}

}  // namespace

PassedNumbers numbers_passed_in(DebugState& info, Dwarf_Die unit) {
  PassedNumbers found;
  TreeWalk tree(info.stop, &info.shared_reads);
  for_each_call(unit, tree, [&](Dwarf_Die call) {
    tree.children(call, [&](Dwarf_Die parameter) {
      add_number(parameter, found);
      return true;
    });
  });
  return found;
}

bool states_number(const Dwarf_Op& op) noexcept { return operation_of(op, 0).kind == Operation::Kind::constant; }

std::optional<std::uint64_t> stated_number(std::span<const Dwarf_Op> expression) noexcept {
  if (expression.empty() || expression.size() > 2) return std::nullopt;
  if (expression.size() == 2 && expression.back().atom != DW_OP_stack_value) return std::nullopt;
  const Operation first = operation_of(expression.front(), 0);
  return first.kind == Operation::Kind::constant ? std::optional(first.number) : std::nullopt;
}

void NumbersOfParameter::add(std::uint64_t number) {
  if (numbers_.size() < kMostNumbers && contradict(number)) numbers_.push_back(number);
}

bool NumbersOfParameter::contradict(std::uint64_t number) const noexcept {
  return numbers_.size() < kMostNumbers &&
         std::ranges::none_of(numbers_, [number](std::uint64_t each) { return is_same_number(each, number); });
}

}  // namespace usdt::locate
