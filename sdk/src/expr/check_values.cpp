// SPDX-License-Identifier: BSD-2-Clause
// Types of expressions: arguments, values of their enums, and words.
#include <fmt/format.h>

#include <algorithm>

#include "base/try.hpp"
#include "expr/checker.hpp"
#include "expr/enumerators.hpp"
#include "expr/near_names.hpp"

namespace usdt::expr {
namespace {

using Node = TypedExpression::Node;
using Type = ExpressionType;
using Op = Operator;

}  // namespace

const Arg* Checker::enum_in(const ExpressionNode& node) const {
  if (is_argument(node)) {
    const Arg& arg = args_[places_[node.bits]];
    const bool known = arg.declaration && !arg.declaration->enumerators.empty();
    return known && arg.type.size >= 1 && arg.type.size <= 8 ? &arg : nullptr;
  }
  if (node.op != Op::bit_and && node.op != Op::bit_or && node.op != Op::bit_xor && node.op != Op::complement)
    return nullptr;
  for (const ExpressionNode& each : node.of)
    if (const Arg* found = enum_in(each)) return found;
  return nullptr;
}

Result<Node> Checker::enumerator(const std::string& name, const ExpressionNode& node) {
  if (enum_ == nullptr)
    return wrong(node, fmt::format("{}: there is no such argument{}", name, near_names(name, args_)));
  const std::vector<Enumerator>& all = enum_->declaration->enumerators;
  const auto found = std::ranges::find_if(
      all, [&](const Enumerator& each) { return names_enumerator(name, enum_->declaration->type, each.name); });
  if (found == all.end())
    return wrong(node, fmt::format("{} is {}, which has no value '{}'{}", name_of(*enum_), enum_->declaration->type,
                                   name, near_enumerators(name, all)));
  const unsigned spare = 64 - 8 * enum_->type.size;
  const std::uint64_t bits = found->bits << spare;
  Node made{.op = Op::integer};
  if (enum_->type.is_signed) {
    made.bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(bits) >> spare);
  } else {
    made.bits = bits >> spare;
    if (enum_->type.size == 8) made.type = Type::unsigned_integer;
  }
  return made;
}

Result<Node> Checker::unbound(const ExpressionNode& node) {
  const ValuePath& path = expression_.values[node.bits];
  return enum_ == nullptr && TypedExpression::is_word(path) ? word(path.text, node) : enumerator(path.text, node);
}

Result<Node> Checker::value(const ExpressionNode& node) {
  if (!is_argument(node)) return unbound(node);
  return argument(places_[node.bits], expression_.values[node.bits].text, node);
}

Result<Node> Checker::argument(std::size_t position, const std::string& name, const ExpressionNode& node) {
  const Arg& arg = args_[position];
  Node made{.op = Op::value};
  if (arg.is_list()) return wrong(node, fmt::format("{} is no number: ask for {}[0], or {}.size", name, name, name));
  if (arg.type.kind == TypeKind::structure || arg.type.kind == TypeKind::array)
    return wrong(node, fmt::format("{} is no number: name a member of it", name));
  if (arg.type.is_float()) {
    made.type = arg.type.size <= sizeof(float) ? Type::real32 : Type::real64;
  } else if (arg.type.size == 8 && !arg.type.is_signed) {
    made.type = Type::unsigned_integer;
  }
  auto number = TRY(use(position, name, node));
  made.bits = number;
  return made;
}

Result<std::uint8_t> Checker::use(std::size_t position, const std::string& name, const ExpressionNode& node) {
  if (const auto known = std::ranges::find(used, position); known != used.end())
    return static_cast<std::uint8_t>(known - used.begin());
  const Arg& arg = args_[position];
  if (!arg.readable()) return wrong(node, fmt::format("{}: {}", name, arg.why_unreadable()));
  const auto takes_another = [](const TypedExpression::OfList& each) {
    return each.element || each.alternative || (each.counts && each.counts->first);
  };
  if (used.size() == TypedExpression::kMostValues)
    return wrong(
        node, fmt::format(
                  "more than {} different values{}", TypedExpression::kMostValues,
                  std::ranges::none_of(of_lists, takes_another) ? "" : ", of which a list takes some for its length"));
  const auto number = static_cast<std::uint8_t>(used.size());
  used.push_back(static_cast<std::uint8_t>(position));
  const bool half = arg.type.is_float() && arg.type.size == 2;
  const bool is_truth = arg.type.kind == TypeKind::boolean && arg.type.size == 1;
  if (!arg.counts && !arg.element && !arg.alternative && !half && !is_truth) return number;
  TypedExpression::OfList of_list{.value = number, .counts = arg.counts, .element = arg.element, .half = half};
  // What is neither 0 nor 1 decides nothing: it is checked as the length of a list is, which may be too large.
  if (is_truth) of_list.counts = ElementCount{.most = 1, .size = 1};
  if (arg.alternative) {
    auto discriminant =
        use(arg.alternative->discriminant, args_[arg.alternative->discriminant].declaration->name, node);
    if (!discriminant) return discriminant;
    of_list.alternative = *arg.alternative;
    of_list.alternative->discriminant = *discriminant;
  }
  if (arg.element) {
    auto length = use(arg.element->length, fmt::format("the length of the list of {}", name), node);
    if (!length) return length;
    of_list.element->length = *length;
  }
  if (of_list.counts && of_list.counts->first) {
    auto first = use(*of_list.counts->first, name, node);
    if (!first) return first;
    of_list.counts->first = *first;
  }
  of_lists.push_back(of_list);
  return number;
}

Result<Node> Checker::word(std::string_view name, const ExpressionNode& node) const {
  const HitFieldInfo* known = find_hit_field(name);
  if (known != nullptr && known->source == HitFieldSource::site)
    return Node{.op = Op::field, .type = known->type, .bits = static_cast<std::uint64_t>(known->field)};
  if (expression_.began == 0) return wrong(node, "elapsed: it is not said since when (Expression::began)");
  Node nsecs{.op = Op::field, .type = Type::unsigned_integer, .bits = static_cast<std::uint64_t>(HitField::nsecs)};
  return pair(Op::subtract, std::move(nsecs),
              Node{.op = Op::integer, .type = Type::unsigned_integer, .bits = expression_.began},
              Type::unsigned_integer);
}

Result<Node> Checker::field(const ExpressionNode& node) {
  const auto field = static_cast<HitField>(node.bits);
  if (is_only_a_key(field))
    return wrong(node, fmt::format("'{}' can be a key of a table, and nothing else", to_string(field)));
  return Node{.op = Op::field, .type = info_of(field).type, .bits = static_cast<std::uint64_t>(field)};
}

}  // namespace usdt::expr
