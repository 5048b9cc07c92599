// SPDX-License-Identifier: BSD-2-Clause
#include "expr/value_compiler.hpp"

#include <algorithm>
#include <array>

#include "expr/numbers.hpp"

namespace usdt::expr {
namespace {

using Op = Operator;

/// How integers are compared.
struct Jump {
  Op comparison = Op::equal;
  std::uint8_t of_unsigned = 0, of_signed = 0;
};
constexpr std::array<Jump, 6> kJumps{{{Op::less, kJumpLess, kJumpSignedLess},
                                      {Op::less_equal, kJumpLessEqual, kJumpSignedLessEqual},
                                      {Op::greater, BPF_JGT, kJumpSignedGreater},
                                      {Op::greater_equal, BPF_JGE, kJumpSignedGreaterEqual},
                                      {Op::equal, BPF_JEQ, BPF_JEQ},
                                      {Op::not_equal, kJumpNotEqual, kJumpNotEqual}}};

std::uint8_t jump_of(Op comparison, bool is_signed) {
  const Jump& jump = *std::ranges::find(kJumps, comparison, &Jump::comparison);
  return is_signed ? jump.of_signed : jump.of_unsigned;
}

}  // namespace

void ValueCompiler::value(const Node& node) {
  if (is_leaf(node)) return leaf(node, 0);
  if (node.op == Op::field) return field(static_cast<HitField>(node.bits));
  if (node.op == Op::negate || node.op == Op::complement) {
    value(node.of[0]);
    if (node.op == Op::negate) return alu_by(BPF_NEG, 0, 0);
    return alu_by(BPF_XOR, 0, -1);
  }
  if (node.op == Op::conditional) return choice(node);
  if (node.op == Op::log2_bucket || node.op == Op::linear_bucket) {
    value(node.of[0]);
    return bucket(node);
  }
  if (node.op == Op::hex || node.op == Op::ntop) return value(node.of[0]);
  if (is_truth(node)) return truth(node);
  both(node);
  compute(node);
}

bool ValueCompiler::is_truth(const Node& node) {
  return is_comparison(node.op) || node.op == Op::matches || node.op == Op::logical_and || node.op == Op::logical_or ||
         node.op == Op::logical_not;
}

void ValueCompiler::truth(const Node& node) {
  const Label yes = label();
  const Label no = label();
  const Label end = label();
  branch(node, yes, no);
  place(no);
  set(0, 0);
  jump(end);
  place(yes);
  set(0, 1);
  place(end);
}

void ValueCompiler::choice(const Node& node) {
  const Label yes = label();
  const Label no = label();
  const Label end = label();
  branch(node.of[0], yes, no);
  place(no);
  value(node.of[2]);
  jump(end);
  place(yes);
  value(node.of[1]);
  place(end);
}

/// Leaves the values of two operands in r0 and r1.
void ValueCompiler::both(const Node& node) {
  const Node& left = node.of[0];
  const Node& right = node.of[1];
  if (is_leaf(right)) {
    value(left);
    return leaf(right, 1);
  }
  if (is_leaf(left)) {
    value(right);
    move(1, 0);
    return leaf(left, 0);
  }
  // The operand that needs more room comes first, while there is most of it: operands have no order.
  const bool right_first = room_for(right) > room_for(left);
  value(right_first ? right : left);
  const int kept = scratch_.free(0);
  store(kFrame, kept, 0);
  scratch_.take();
  value(right_first ? left : right);
  scratch_.give_back();
  if (right_first) return load(BPF_LDX | BPF_MEM | kDouble, 1, kFrame, kept);
  move(1, 0);
  load(BPF_LDX | BPF_MEM | kDouble, 0, kFrame, kept);
}

/// How many words of the scratch room the value of `node` takes, while others wait there.
int ValueCompiler::room_for(const Node& node) {
  const bool of_texts = is_comparison(node.op) && node.of[0].type == ExpressionType::text;
  if (of_texts) return kRoomForTexts;
  if (node.op == Op::matches) return static_cast<TextMatch>(node.bits) == TextMatch::glob ? kRoomForPattern : 0;
  if (is_leaf(node) || node.of.empty()) return 0;
  int most = 0;
  for (const Node& each : node.of) most = std::max(most, room_for(each));
  const bool waits = node.of.size() == 2 && node.op != Op::logical_and && node.op != Op::logical_or &&
                     !is_leaf(node.of[0]) && !is_leaf(node.of[1]);
  return waits ? std::max(most, 1 + std::min(room_for(node.of[0]), room_for(node.of[1]))) : most;
}

void ValueCompiler::branch(const Node& node, Label yes, Label no) {
  if (node.op == Op::logical_not) return branch(node.of[0], no, yes);
  if (node.op == Op::logical_and || node.op == Op::logical_or) {
    const Label next = label();
    node.op == Op::logical_and ? branch(node.of[0], next, no) : branch(node.of[0], yes, next);
    place(next);
    return branch(node.of[1], yes, no);
  }
  if (node.op == Op::matches) return matches(node, yes, no);
  if (is_comparison(node.op)) return comparison(node, yes, no);
  if (node.op == Op::integer) return jump(node.bits != 0 ? yes : no);
  value(node);
  jump_if_is(kJumpNotEqual, 0, 0, yes);
  jump(no);
}

void ValueCompiler::comparison(const Node& node, Label yes, Label no) {
  const Node& left = node.of[0];
  const Node& right = node.of[1];
  if (left.type == ExpressionType::text) return texts_equal(node, yes, no);
  if (left.type == ExpressionType::real32 || left.type == ExpressionType::real64) return reals(node, yes, no);
  const bool left_signed = left.type == ExpressionType::signed_integer;
  const bool right_signed = right.type == ExpressionType::signed_integer;
  const bool small = right.op == Op::integer && right_signed && static_cast<std::int64_t>(right.bits) >= 0;
  if (right.op == Op::integer && fits_immediate(right.bits) && (left_signed == right_signed || small)) {
    value(left);
    jump_if_is(jump_of(node.op, left_signed), 0, static_cast<std::int32_t>(right.bits), yes);
    return jump(no);
  }
  both(node);
  // A negative number is below every unsigned one.
  const auto below = [&](Op op) { return op == Op::less || op == Op::less_equal || op == Op::not_equal; };
  if (left_signed && !right_signed) jump_if_is(kJumpSignedLess, 0, 0, below(node.op) ? yes : no);
  if (!left_signed && right_signed) {
    const bool above = node.op == Op::greater || node.op == Op::greater_equal || node.op == Op::not_equal;
    jump_if_is(kJumpSignedLess, 1, 0, above ? yes : no);
  }
  jump_if(jump_of(node.op, left_signed && right_signed), 0, 1, yes);
  jump(no);
}

void ValueCompiler::reals(const Node& node, Label yes, Label no) {
  const Label odd = node.op == Op::not_equal ? yes : no;
  for (std::uint8_t i = 0; i < 2; ++i) {
    const Node& operand = node.of[i];
    if (operand.op == Op::real) {
      set(i, order_key(operand.type, operand.bits));
    } else {
      leaf(operand, i);
      make_order_key(i, operand.type, odd);
    }
  }
  jump_if(jump_of(node.op, false), 0, 1, yes);
  jump(no);
}

}  // namespace usdt::expr
