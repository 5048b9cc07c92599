// SPDX-License-Identifier: BSD-2-Clause
#include "expr/real_comparisons.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "expr/numbers.hpp"
#include "expr/typed_nodes.hpp"
#include "usdt/int128.hpp"

namespace usdt::expr {
namespace {

using Node = TypedExpression::Node;
using Type = ExpressionType;
using Op = Operator;

bool is_literal(const Node& node) { return node.op == Op::integer || node.op == Op::real; }

/// The number that a literal integer is.
Int128 integer_of(const Node& literal) {
  return literal.type == Type::signed_integer ? static_cast<Int128>(static_cast<std::int64_t>(literal.bits))
                                              : static_cast<Int128>(literal.bits);
}

/// -1, 0 or 1 as a real, not NaN, is below an integer, equal or above.
int compare(double real, const Int128& integer) {
  constexpr double kBeyond = 36893488147419103232.0;  // 2^65: no integer of 64 bits is as far from 0
  if (std::fabs(real) >= kBeyond) return real < 0 ? -1 : 1;
  const auto whole = static_cast<Int128>(real);  // towards 0
  if (whole != integer) return whole < integer ? -1 : 1;
  const double rest = real - std::trunc(real);
  return rest < 0 ? -1 : rest > 0 ? 1 : 0;
}

/// As compare(), of two literals that are numbers.
int compare(const Node& a, const Node& b) {
  if (a.op == Op::integer && b.op == Op::integer)
    return integer_of(a) < integer_of(b) ? -1 : integer_of(a) > integer_of(b) ? 1 : 0;
  if (a.op == Op::integer) return -compare(std::bit_cast<double>(b.bits), integer_of(a));
  const double real = std::bit_cast<double>(a.bits);
  if (b.op == Op::integer) return compare(real, integer_of(b));
  const double other = std::bit_cast<double>(b.bits);
  return real < other ? -1 : real > other ? 1 : 0;
}

Op mirrored(Op op) {
  if (op == Op::less) return Op::greater;
  if (op == Op::greater) return Op::less;
  if (op == Op::less_equal) return Op::greater_equal;
  if (op == Op::greater_equal) return Op::less_equal;
  return op;
}

/// Holds the values of another type next to a literal, by which it is compared with a value of that type. A literal
/// beyond all of them has none there.
struct Neighbours {
  std::optional<Node> below, above;
  bool exact = false;  ///< both are the literal
};

Neighbours reals_around(Type type, const Node& literal) {
  const auto real = [type](double value) {
    return Node{.op = Op::real,
                .type = type,
                .bits = type == Type::real32 ? std::bit_cast<std::uint32_t>(static_cast<float>(value))
                                             : std::bit_cast<std::uint64_t>(value)};
  };
  const auto next = [type](double from, double towards) {
    return type == Type::real32 ? std::nextafterf(static_cast<float>(from), static_cast<float>(towards))
                                : std::nextafter(from, towards);
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double nearest =
      literal.op == Op::real ? std::bit_cast<double>(literal.bits) : static_cast<double>(integer_of(literal));
  if (type == Type::real32) nearest = static_cast<float>(nearest);
  const int order = compare(Node{.op = Op::real, .bits = std::bit_cast<std::uint64_t>(nearest)}, literal);
  if (order == 0) return {real(nearest), real(nearest), true};
  const double below = order < 0 ? nearest : next(nearest, -kInfinity);
  return {real(below), real(next(below, kInfinity)), false};
}

Neighbours integers_around(const Node& literal) {
  constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  constexpr std::uint64_t highest = std::numeric_limits<std::uint64_t>::max();
  const auto integer = [](const Int128& value) {
    const bool beyond = value > std::numeric_limits<std::int64_t>::max();
    return Node{.op = Op::integer,
                .type = beyond ? Type::unsigned_integer : Type::signed_integer,
                .bits = static_cast<std::uint64_t>(value)};
  };
  const double real = std::bit_cast<double>(literal.bits);
  if (compare(real, lowest) < 0) return {std::nullopt, integer(lowest), false};
  if (compare(real, highest) > 0) return {integer(highest), std::nullopt, false};
  const auto below = static_cast<Int128>(std::floor(real));
  const bool exact = std::floor(real) == real;
  return {integer(below), integer(exact ? below : below + 1), exact};
}

Node with_literal(Op op, const Node& left, const Neighbours& around) {
  if (around.exact) return pair(op, left, *around.below);
  // Without a number on one side of the literal, what is not on the other side is nothing.
  const auto is_below = [&] {
    return around.below ? pair(Op::less_equal, left, *around.below) : pair(Op::less, left, *around.above);
  };
  const auto is_above = [&] {
    return around.above ? pair(Op::greater_equal, left, *around.above) : pair(Op::greater, left, *around.below);
  };
  if (op == Op::less || op == Op::less_equal) return is_below();
  if (op == Op::greater || op == Op::greater_equal) return is_above();
  // Nothing equals it; what cannot be read still leaves the question without an answer.
  Node never{.op = Op::logical_and};
  never.of = {is_below(), is_above()};
  if (op == Op::equal) return never;
  Node always{.op = Op::logical_not};
  always.of = {std::move(never)};
  return always;
}

}  // namespace

Result<Node> compare_reals(Op op, Node left, Node right, const ExpressionNode& at) {
  if (is_literal(left) && is_literal(right)) return truth(holds(op, compare(left, right)));
  if (is_literal(left)) {
    std::swap(left, right);
    op = mirrored(op);
  }
  if (!is_literal(right)) {
    if (left.type == right.type) return pair(op, std::move(left), std::move(right));
    return wrong(at, "reals are compared with literals, and with reals of their own size");
  }
  const Neighbours around = is_real(left.type) ? reals_around(left.type, right) : integers_around(right);
  return with_literal(op, left, around);
}

}  // namespace usdt::expr
