// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/passed_numbers.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace usdt::dwarf {
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

/// Goes through the calls of a unit.
class CallsOfUnit {
 public:
  CallsOfUnit(const StopToken& stop, Budget& budget) : tree_(stop, &budget) {}

  void walk(Dwarf_Die parent, unsigned depth = 0) {
    if (depth == deepest_tree) return;
    tree_.children(parent, [&](Dwarf_Die child) {
      const int tag = dwarf_tag(&child);
      const bool has_calls = tag == DW_TAG_namespace || tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block ||
                             tag == DW_TAG_inlined_subroutine;
      if (has_calls || tag == DW_TAG_call_site || tag == DW_TAG_GNU_call_site) walk(child, depth + 1);
      if (tag == DW_TAG_call_site_parameter || tag == DW_TAG_GNU_call_site_parameter) take(child);
      return true;
    });
  }
  [[nodiscard]] PassedNumbers found() && { return std::move(found_); }

 private:
  void take(Dwarf_Die die) {
    const bool old = dwarf_tag(&die) == DW_TAG_GNU_call_site_parameter;
    const auto parameter = reference(own_attribute(die, old ? DW_AT_abstract_origin : DW_AT_call_parameter));
    auto value = own_attribute(die, old ? DW_AT_GNU_call_site_value : DW_AT_call_value);
    Dwarf_Op* expression = nullptr;
    std::size_t count = 0;
    if (!parameter || !value || dwarf_getlocation(&*value, &expression, &count) != 0) return;
    if (const auto number = stated_number({expression, count})) found_[origin_of(*parameter).addr].add(*number);
  }

  TreeWalk tree_;
  PassedNumbers found_;
};

}  // namespace

PassedNumbers passed_numbers(Dwarf_Die unit, const StopToken& stop, Budget& budget) {
  CallsOfUnit calls(stop, budget);
  calls.walk(unit);
  return std::move(calls).found();
}

std::optional<std::uint64_t> stated_number(std::span<const Dwarf_Op> expression) noexcept {
  if (expression.empty() || expression.size() > 2) return std::nullopt;
  if (expression.size() == 2 && expression.back().atom != DW_OP_stack_value) return std::nullopt;
  const Dwarf_Op& op = expression.front();
  if (op.atom >= DW_OP_lit0 && op.atom <= DW_OP_lit31) return op.atom - DW_OP_lit0;
  return op.atom >= DW_OP_const1u && op.atom <= DW_OP_consts ? std::optional<std::uint64_t>(op.number) : std::nullopt;
}

void NumbersOfParameter::add(std::uint64_t number) {
  if (numbers.size() < kMost && contradict(number)) numbers.push_back(number);
}

bool NumbersOfParameter::contradict(std::uint64_t number) const noexcept {
  return numbers.size() < kMost &&
         std::ranges::none_of(numbers, [number](std::uint64_t each) { return is_same_number(each, number); });
}

}  // namespace usdt::dwarf
