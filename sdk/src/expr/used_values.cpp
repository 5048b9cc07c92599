// SPDX-License-Identifier: BSD-2-Clause
#include "expr/used_values.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/try.hpp"
#include "expr/typed_nodes.hpp"

namespace usdt::expr {

Result<std::uint8_t> UsedValues::use(std::size_t position, const std::string& name, const ExpressionNode& node) {
  if (const auto known = std::ranges::find(positions_, position); known != positions_.end())
    return static_cast<std::uint8_t>(known - positions_.begin());
  const Arg& arg = args_[position];
  if (!arg.readable()) return wrong(node, fmt::format("{}: {}", name, arg.why_unreadable()));
  const auto takes_another = [](const TypedExpression::OfList& each) {
    return each.element || each.alternative || (each.counts && each.counts->first);
  };
  if (positions_.size() == TypedExpression::kMostValues)
    return wrong(
        node, fmt::format(
                  "more than {} different values{}", TypedExpression::kMostValues,
                  std::ranges::none_of(of_lists_, takes_another) ? "" : ", of which a list takes some for its length"));
  const auto number = static_cast<std::uint8_t>(positions_.size());
  positions_.push_back(static_cast<std::uint8_t>(position));
  const bool half = arg.type.is_float() && arg.type.size == 2;
  const bool is_truth = arg.type.kind == TypeKind::boolean && arg.type.size == 1;
  if (!arg.counts && !arg.element && !arg.alternative && !half && !is_truth) return number;
  TypedExpression::OfList of_list{.value = number, .counts = arg.counts, .element = arg.element, .half = half};
  // A truth value other than 0 and 1 decides nothing: it is checked as the length of a list is, which may be too large.
  if (is_truth) of_list.counts = ElementCount{.most = 1, .size = 1};
  if (arg.alternative) {
    const auto discriminant =
        TRY(use(arg.alternative->discriminant, args_[arg.alternative->discriminant].declaration->name, node));
    of_list.alternative = *arg.alternative;
    of_list.alternative->discriminant = discriminant;
  }
  if (arg.element) {
    const auto length = TRY(use(arg.element->length, fmt::format("the length of the list of {}", name), node));
    of_list.element->length = length;
  }
  if (of_list.counts && of_list.counts->first) {
    const auto first = TRY(use(*of_list.counts->first, name, node));
    of_list.counts->first = first;
  }
  of_lists_.push_back(of_list);
  return number;
}

}  // namespace usdt::expr
