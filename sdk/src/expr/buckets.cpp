// SPDX-License-Identifier: BSD-2-Clause
#include "expr/buckets.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "expr/numbers.hpp"
#include "expr/row.hpp"
#include "expr/typed_nodes.hpp"
#include "usdt/int128.hpp"

namespace usdt::expr {
namespace {

using Node = TypedExpression::Node;
using Type = ExpressionType;
using Op = Operator;

/// Returns the bits of the least real of the type that is not below `real`.
std::uint64_t bits_not_below(Type type, double real) {
  if (type == Type::real64) return std::bit_cast<std::uint64_t>(real);
  auto narrow = static_cast<float>(real);
  if (static_cast<double>(narrow) < real) narrow = std::nextafterf(narrow, std::numeric_limits<float>::infinity());
  return std::bit_cast<std::uint32_t>(narrow);
}

}  // namespace

Result<Node> linear_bucket_of_real(const ExpressionNode& node, Node of) {
  const auto number = [&](std::size_t n) { return static_cast<Int128>(static_cast<std::int64_t>(node.of[n].bits)); };
  const Int128 min = number(1), max = number(2), step = number(3);
  const auto digits = static_cast<unsigned>(node.of[4].bits);
  if ((max - min + step - 1) / step > static_cast<Int128>(kMostRealBuckets))
    return wrong(node.of[0], fmt::format("more than {} ranges of a real", kMostRealBuckets));
  const Type type = of.type;
  Node made{.op = Op::linear_bucket};
  made.of.push_back(std::move(of));
  const auto add = [&](const Int128& bound) {
    const double real = decimal(static_cast<std::int64_t>(bound), digits);
    made.of.push_back({.op = Op::real, .type = type, .bits = bits_not_below(type, real)});
  };
  for (Int128 bound = min; bound < max; bound += step) add(bound);
  add(max);
  return made;
}

}  // namespace usdt::expr
