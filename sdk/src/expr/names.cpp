// SPDX-License-Identifier: BSD-2-Clause
#include "expr/names.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/try.hpp"
#include "expr/enumerators.hpp"
#include "expr/near_names.hpp"
#include "expr/typed_nodes.hpp"

namespace usdt::expr {
namespace {

using Node = TypedExpression::Node;
using Type = ExpressionType;
using Op = Operator;

std::string_view declared_name(const Arg& arg) { return arg.result && arg.name().empty() ? "retval" : arg.name(); }

}  // namespace

const Arg* Names::enum_in(const ExpressionNode& node) const {
  if (is_argument(node)) {
    const Arg& arg = arg_of(node);
    const bool known = arg.declaration && !arg.declaration->enumerators.empty();
    return known && arg.type.size >= 1 && arg.type.size <= 8 ? &arg : nullptr;
  }
  if (node.op != Op::bit_and && node.op != Op::bit_or && node.op != Op::bit_xor && node.op != Op::complement)
    return nullptr;
  for (const ExpressionNode& each : node.of)
    if (const Arg* found = enum_in(each)) return found;
  return nullptr;
}

Result<Node> Names::enumerator(const std::string& name, const ExpressionNode& node) const {
  if (enum_ == nullptr)
    return wrong(node, fmt::format("{}: there is no such argument{}", name, near_names(name, args_)));
  const std::vector<Enumerator>& all = enum_->declaration->enumerators;
  const auto found = std::ranges::find_if(
      all, [&](const Enumerator& each) { return names_enumerator(name, enum_->declaration->type, each.name); });
  if (found == all.end())
    return wrong(node, fmt::format("{} is {}, which has no value '{}'{}", declared_name(*enum_),
                                   enum_->declaration->type, name, near_enumerators(name, all)));
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

Result<Node> Names::unbound(const ExpressionNode& node) const {
  const ValuePath& path = expression_.values[node.bits];
  return enum_ == nullptr && TypedExpression::is_word(path) ? word(path.text, node) : enumerator(path.text, node);
}

bool Names::points(const ExpressionNode& node) const {
  if (!is_argument(node)) return false;
  const usdt::Type& type = arg_of(node).type;
  const bool unsigned_word = type.kind == TypeKind::integer && !type.is_signed && type.size >= 4;
  return type.kind == TypeKind::pointer || type.kind == TypeKind::text || unsigned_word;
}

Result<Node> Names::value(const ExpressionNode& node) {
  if (!is_argument(node)) return unbound(node);
  return argument(places_[node.bits], expression_.values[node.bits].text, node);
}

Result<Node> Names::argument(std::size_t position, const std::string& name, const ExpressionNode& node) {
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
  made.bits = TRY(used_.use(position, name, node));
  return made;
}

Result<Node> Names::word(std::string_view name, const ExpressionNode& node) const {
  const HitFieldInfo* known = find_hit_field(name);
  if (known != nullptr && known->field != HitField::elapsed)
    return Node{.op = Op::field, .type = known->type, .bits = static_cast<std::uint64_t>(known->field)};
  if (expression_.began == 0) return wrong(node, "elapsed: it is not said since when (Expression::began)");
  Node nsecs{.op = Op::field, .type = Type::unsigned_integer, .bits = static_cast<std::uint64_t>(HitField::nsecs)};
  return pair(Op::subtract, std::move(nsecs),
              Node{.op = Op::integer, .type = Type::unsigned_integer, .bits = expression_.began},
              Type::unsigned_integer);
}

}  // namespace usdt::expr
