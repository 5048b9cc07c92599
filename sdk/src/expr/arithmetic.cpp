// SPDX-License-Identifier: BSD-2-Clause
#include "expr/arithmetic.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "expr/numbers.hpp"
#include "expr/row.hpp"

namespace usdt::expr {
namespace {

using Op = Operator;

/// The operators that are one instruction each.
constexpr std::array<std::pair<Op, std::uint8_t>, 6> kInstructions{{{Op::multiply, BPF_MUL},
                                                                    {Op::add, BPF_ADD},
                                                                    {Op::subtract, BPF_SUB},
                                                                    {Op::bit_and, BPF_AND},
                                                                    {Op::bit_xor, BPF_XOR},
                                                                    {Op::bit_or, BPF_OR}}};

}  // namespace

void Arithmetic::compute(const Node& node) {
  if (node.op == Op::shift_left || node.op == Op::shift_right) return shift(node);
  if (node.op == Op::divide || node.op == Op::remainder) return divide(node);
  alu(std::ranges::find(kInstructions, node.op, &std::pair<Op, std::uint8_t>::first)->second, 0, 1);
}

void Arithmetic::shift(const Node& node) {
  const Label end = label();
  const Label within = label();
  const bool extends = node.op == Op::shift_right && node.of[0].type == ExpressionType::signed_integer;
  jump_if_is(kJumpLessEqual, 1, 63, within);
  if (extends) {
    alu_by(kArithmeticShift, 0, 63);
  } else {
    set(0, 0);
  }
  jump(end);
  place(within);
  alu(node.op == Op::shift_left ? BPF_LSH : extends ? kArithmeticShift : BPF_RSH, 0, 1);
  place(end);
}

/// Instructions for signed division came with Linux 6.6: here the magnitudes are divided.
void Arithmetic::divide(const Node& node) {
  const bool quotient = node.op == Op::divide;
  const std::uint8_t op = quotient ? BPF_DIV : BPF_MOD;
  jump_if_is(BPF_JEQ, 1, 0, undecided_);
  if (node.type != ExpressionType::signed_integer) return alu(op, 0, 1);
  move(2, 0);  // its sign is that of the result
  if (quotient) alu(BPF_XOR, 2, 1);
  negate_if_negative(0, 0);
  negate_if_negative(1, 1);
  alu(op, 0, 1);
  negate_if_negative(2, 0);
}

void Arithmetic::negate_if_negative(std::uint8_t sign, std::uint8_t number) {
  const Label end = label();
  jump_if_is(kJumpSignedGreaterEqual, sign, 0, end);
  alu_by(BPF_NEG, number, 0);
  place(end);
}

void Arithmetic::widen_half(std::uint8_t reg) {
  constexpr std::int32_t rebias = 112 << 23, to_infinity = 224 << 23, wider = 13;
  const Label normal = label();
  const Label small = label();
  const Label end = label();
  move(5, reg);
  alu_by(BPF_AND, 5, 0x8000);
  alu_by(BPF_LSH, 5, 16);
  alu_by(BPF_AND, reg, 0x7fff);
  jump_if_is(kJumpLess, reg, 0x400, small);
  jump_if_is(kJumpLess, reg, 0x7c00, normal);
  alu_by(BPF_LSH, reg, wider);  // infinite, or no number
  alu_by(BPF_ADD, reg, to_infinity);
  jump(end);
  place(normal);
  alu_by(BPF_LSH, reg, wider);
  alu_by(BPF_ADD, reg, rebias);
  jump(end);
  place(small);  // subnormal: its highest bit becomes the one that is not written
  for (int top = 9; top >= 0; --top) {
    const Label next = label();
    jump_if_is(kJumpLess, reg, 1 << top, next);
    alu_by(BPF_LSH, reg, 23 - top);
    alu_by(BPF_ADD, reg, (top + 102) << 23);
    jump(end);
    place(next);
  }
  place(end);
  alu(BPF_OR, reg, 5);
}

void Arithmetic::require(const AlternativeValues& values, std::uint8_t reg) {
  const Label there = label();
  const Label met = values.others ? undecided_ : there;
  for (const auto& [first, last] : values.ranges) {
    const Label next = label();
    set(5, first);
    jump_if(kJumpLess, reg, 5, next);
    set(5, last);
    jump_if(kJumpLessEqual, reg, 5, met);
    place(next);
  }
  if (!values.others) jump(undecided_);
  place(there);
}

void Arithmetic::make_order_key(std::uint8_t reg, ExpressionType type, Label odd) {
  const bool narrow = type == ExpressionType::real32;
  const Label nonzero = label();
  if (narrow) alu_by(BPF_LSH, reg, 32);
  move(2, reg);
  alu_by(BPF_LSH, 2, 1);
  set(3, narrow ? 0xff00'0000'0000'0000 : 0xffe0'0000'0000'0000);  // infinity, without its sign
  jump_if(BPF_JGT, 2, 3, odd);
  jump_if_is(kJumpNotEqual, 2, 0, nonzero);
  set(reg, 0);
  place(nonzero);
  move(2, reg);
  alu_by(kArithmeticShift, 2, 63);
  set(3, 1ULL << 63);
  alu(BPF_OR, 2, 3);
  alu(BPF_XOR, reg, 2);
}

void Arithmetic::key_of_real(ExpressionType type) {
  const bool narrow = type == ExpressionType::real32;
  const Label number = label();
  const Label end = label();
  if (narrow) alu_by(BPF_LSH, 0, 32);
  move(2, 0);
  alu_by(BPF_LSH, 2, 1);  // without its sign
  set(3, infinity(type) << (narrow ? 33 : 1));
  jump_if(kJumpLessEqual, 2, 3, number);
  set(0, infinity(type) | infinity(type) >> 1);
  jump(end);
  place(number);
  const Label nonzero = label();
  jump_if_is(kJumpNotEqual, 2, 0, nonzero);
  set(0, 0);
  place(nonzero);
  if (narrow) alu_by(BPF_RSH, 0, 32);
  place(end);
}

void Arithmetic::bucket(const Node& node) {
  if (node.op == Op::linear_bucket) return linear_bucket(node);
  is_real(node.of[0].type) ? log2_bucket_of_real(node) : log2_bucket(node);
}

/// As log2_bucket() of numbers.cpp, of what is in r0.
void Arithmetic::log2_bucket(const Node& node) {
  const auto sub_bits = static_cast<std::int32_t>(node.of[1].bits);
  const Label end = label();
  if (node.of[0].type == ExpressionType::signed_integer) {
    move(2, 0);
    negate_if_negative(2, 0);
  } else {
    set(2, 0);
  }
  jump_if_is(kJumpLess, 0, 1 << sub_bits, end);
  move(1, 0);
  set(3, 0);
  for (const std::int32_t width : {32, 16, 8, 4, 2, 1}) {
    const Label narrow = label();
    move(4, 1);
    alu_by(BPF_RSH, 4, width);
    jump_if_is(BPF_JEQ, 4, 0, narrow);
    move(1, 4);
    alu_by(BPF_ADD, 3, width);
    place(narrow);
  }
  alu_by(BPF_SUB, 3, sub_bits);
  alu(BPF_RSH, 0, 3);
  alu_by(BPF_LSH, 3, sub_bits);
  alu(BPF_ADD, 0, 3);
  place(end);
  negate_if_negative(2, 0);
}

/// As log2_bucket_of_real() of numbers.cpp, of what is in r0.
void Arithmetic::log2_bucket_of_real(const Node& node) {
  const ExpressionType type = node.of[0].type;
  const bool narrow = type == ExpressionType::real32;
  const Label end = label();
  if (narrow) alu_by(BPF_LSH, 0, 32);
  move(2, 0);             // its sign
  alu_by(BPF_LSH, 0, 1);  // all else
  jump_if_is(BPF_JEQ, 0, 0, end);
  set(3, infinity(type) << (narrow ? 33 : 1));
  jump_if(BPF_JGT, 0, 3, undecided_);
  const unsigned below = mantissa_bits(type) - static_cast<unsigned>(node.of[1].bits) + (narrow ? 33 : 1);
  alu_by(BPF_RSH, 0, static_cast<std::int32_t>(below));
  alu_by(BPF_ADD, 0, 1);
  place(end);
  negate_if_negative(2, 0);
}

/// Finds the range of a real by halves, among bounds that are known.
void Arithmetic::linear_bucket(const Node& node) {
  const Label end = label();
  make_order_key(0, node.of[0].type, undecided_);
  search(node, 0, node.of.size() - 1, end);
  place(end);
}

/// Searches for a real that is not below `first` of the bounds, and below those from `last` on.
void Arithmetic::search(const Node& node, std::size_t first, std::size_t last, Label end) {
  if (first == last) {
    set(0, static_cast<std::uint64_t>(linear_bucket_number(first, node.of.size() - 1)));
    return jump(end);
  }
  const std::size_t middle = (first + last) / 2;
  const Node& bound = node.of[1 + middle];
  const Label below = label();
  set(1, order_key(bound.type, bound.bits));
  jump_if(kJumpLess, 0, 1, below);
  search(node, middle + 1, last, end);
  place(below);
  search(node, first, middle, end);
}

}  // namespace usdt::expr
