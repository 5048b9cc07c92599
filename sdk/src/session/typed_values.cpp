// SPDX-License-Identifier: BSD-2-Clause
#include "session/typed_values.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <variant>

namespace usdt::session {
namespace {

/// How many arguments of each function have a type that was said by hand.
std::size_t typed_by_hand(const Question& question) {
  std::size_t fewest = SIZE_MAX;
  for (const PointPattern& pattern : all_patterns(question))
    if (const auto* function = std::get_if<FunctionPattern>(&pattern)) fewest = std::min(fewest, function->args.size());
  return fewest;
}

bool has_cast(const ValuePath& path) {
  return std::ranges::find(path.steps, PathStep::Kind::cast, &PathStep::kind) != path.steps.end();
}

/// Whether nothing but debug information knows the type of a value.
bool is_untyped(const ValuePath& path, std::size_t by_hand) {
  const auto* number = std::get_if<std::uint8_t>(&path.root);
  return !has_cast(path) && (!path.steps.empty() || number == nullptr || *number >= by_hand);
}

bool rests_on_types(const PrintItem& item, std::size_t by_hand) {
  if (item.is_of_hit()) return false;
  if (item.computed)
    return std::ranges::any_of(item.computed->values, [&](const ValuePath& path) { return is_untyped(path, by_hand); });
  using Form = PrintItem::Form;
  if (item.form == Form::value) return is_untyped(item.value, by_hand);
  // The others show the bits of an argument, or what is there, whatever its type.
  const std::size_t own_steps = item.form == Form::address || item.form == Form::bytes ? 1 : 0;
  return item.value.steps.size() > own_steps && !has_cast(item.value);
}

/// Whether an expression asks about a value's sign: by order, or by what computes otherwise with negative numbers.
bool asks_about_signs(const Expression& expression, const ExpressionNode& node, std::size_t by_hand) {
  using enum Operator;
  constexpr std::array kOfSigns = {less, less_equal, greater, greater_equal, divide, remainder, shift_right};
  const bool of_signs = std::ranges::find(kOfSigns, node.op) != kOfSigns.end();
  return std::ranges::any_of(node.of, [&](const ExpressionNode& each) {
    if (of_signs && each.op == value) return is_untyped(expression.values[each.bits], by_hand);
    return asks_about_signs(expression, each, by_hand);
  });
}

}  // namespace

bool rests_on_types(const Question& question, const ProbeFile& file) {
  const std::size_t by_hand = typed_by_hand(question);
  if (question.where && asks_about_signs(*question.where, question.where->root, by_hand)) return true;
  if (question.view.no_events()) return false;
  const auto rests = [&](const PrintList& list) {
    return std::ranges::any_of(list, [&](const PrintItem& item) { return rests_on_types(item, by_hand); });
  };
  const auto& prints = question.values.print;
  if (rests(prints.rest) || std::ranges::any_of(prints.for_probes, rests, &ProbePrint::list)) return true;
  const bool all_are_entries =
      std::ranges::all_of(file.functions, [](const FunctionPoint& point) { return point.moment == Moment::entry; });
  return prints.rest.empty() && (by_hand == 0 || !all_are_entries);
}

}  // namespace usdt::session
