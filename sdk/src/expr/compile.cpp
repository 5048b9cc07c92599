// SPDX-License-Identifier: BSD-2-Clause
// Values, what is known of every hit, and conditions.
#include "expr/compile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "expr/compiler.hpp"
#include "expr/field_readers.hpp"
#include "usdt/bpf/event.h"

namespace usdt::expr {
namespace {

using Op = Operator;

/// The distance of a jump has 16 bits.
constexpr std::size_t kMostInstructions = 16384;

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

/// The operators that are one instruction each.
constexpr std::array<std::pair<Op, std::uint8_t>, 6> kInstructions{{{Op::multiply, BPF_MUL},
                                                                    {Op::add, BPF_ADD},
                                                                    {Op::subtract, BPF_SUB},
                                                                    {Op::bit_and, BPF_AND},
                                                                    {Op::bit_xor, BPF_XOR},
                                                                    {Op::bit_or, BPF_OR}}};

}  // namespace

Result<Code> Compiler::run() {
  const Label yes = label();
  const Label no = label();
  const Label end = label();
  const Node& root = expression_.root();
  if (root.op == Op::row) {
    const Label counts = label();
    branch(root.of[0].of[0], counts, no);
    place(counts);
    row(root);
    jump(yes);
  } else {
    branch(root, yes, no);
  }
  place(no);
  set(0, USDT_NO);
  jump(end);
  place(yes);
  set(0, USDT_YES);
  jump(end);
  place(undecided_);
  set(0, USDT_UNDECIDED);
  place(end);
  if (nested_) return fail(ErrorKind::limit, "an expression that is nested too deep for programs in the kernel");
  if (size() > kMostInstructions)
    return fail(ErrorKind::limit,
                fmt::format("an expression of {} instructions: at most {} fit", size(), kMostInstructions));
  return Code{finished(), std::move(table_)};
}

bool Compiler::is_leaf(const Node& node) {
  return node.op == Op::integer || node.op == Op::real || node.op == Op::value;
}

/// With r4 and r5, where the value is of a list.
void Compiler::leaf(const Node& node, std::uint8_t to) {
  if (node.op != Op::value) return set(to, node.bits);
  const std::vector<TypedExpression::OfList>& lists = expression_.of_lists();
  const auto list = std::ranges::find(lists, node.bits, &TypedExpression::OfList::value);
  if (list == lists.end()) return read(node.bits, to);
  if (list->element) {
    leaf({.op = Op::value, .bits = list->element->length}, 4);
    set(5, list->element->index);
    jump_if(kJumpLessEqual, 4, 5, undecided_);
  }
  if (list->alternative) {
    leaf({.op = Op::value, .bits = list->alternative->discriminant}, 4);
    require(list->alternative->values, 4);
  }
  read(node.bits, to);
  if (list->counts) count(*list->counts, to);
  if (list->half) widen_half(to);
}

/// Goes on only where `reg` has one of these values; with r5.
void Compiler::require(const AlternativeValues& values, std::uint8_t reg) {
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

/// Makes the bits of a _Float16 those of the float of its value, as half_from_bits() does, with r5.
void Compiler::widen_half(std::uint8_t reg) {
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

void Compiler::read(std::uint64_t value, std::uint8_t to) {
  load(BPF_LDX | BPF_MEM /* BPF_W */, to, kFrame, kUnread);
  jump_if_is(BPF_JSET, to, 1 << value, undecided_);
  load(BPF_LDX | BPF_MEM | kDouble, to, kFrame, static_cast<int>(8 * value));
}

/// Makes the length of a list of what was read for it, as Event does, with r5.
void Compiler::count(const ElementCount& counts, std::uint8_t to) {
  if (counts.first) {
    read(*counts.first, 5);
    jump_if(kJumpLess, to, 5, undecided_);
    alu(BPF_SUB, to, 5);
    move(5, to);
    alu_by(BPF_MOD, 5, static_cast<std::int32_t>(counts.size));
    jump_if_is(kJumpNotEqual, 5, 0, undecided_);
    alu_by(BPF_DIV, to, static_cast<std::int32_t>(counts.size));
  }
  set(5, counts.most);
  jump_if(BPF_JGT, to, 5, undecided_);
}

/// Leaves the value of `node` in r0.
void Compiler::value(const Node& node) {
  if (is_leaf(node)) return leaf(node, 0);
  if (node.op == Op::field) return field(static_cast<HitField>(node.bits));
  if (node.op == Op::negate || node.op == Op::complement) {
    value(node.of[0]);
    if (node.op == Op::negate) return alu_by(BPF_NEG, 0, 0);
    return alu_by(BPF_XOR, 0, -1);
  }
  if (node.op == Op::conditional) return choice(node);
  if (node.op == Op::log2_bucket) return is_real(node.of[0].type) ? bucket_of_real(node) : bucket(node);
  if (node.op == Op::linear_bucket) return linear_bucket(node);
  if (node.op == Op::hex || node.op == Op::ntop) return value(node.of[0]);
  if (is_truth(node)) return truth(node);
  both(node);
  compute(node);
}

bool Compiler::is_truth(const Node& node) {
  return is_comparison(node.op) || node.op == Op::matches || node.op == Op::logical_and || node.op == Op::logical_or ||
         node.op == Op::logical_not;
}

void Compiler::truth(const Node& node) {
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

void Compiler::choice(const Node& node) {
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

/// Of two operands the values in r0 and r1.
void Compiler::both(const Node& node) {
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
  // What needs more room comes first, while there is most of it: there is no order in which operands are looked at.
  const bool right_first = room_for(right) > room_for(left);
  value(right_first ? right : left);
  const int kept = spill(0);
  store(kFrame, kept, 0);
  ++spilled_;
  value(right_first ? left : right);
  --spilled_;
  if (right_first) return load(BPF_LDX | BPF_MEM | kDouble, 1, kFrame, kept);
  move(1, 0);
  load(BPF_LDX | BPF_MEM | kDouble, 0, kFrame, kept);
}

/// How many words of the scratch room the value of `node` takes, while others wait there.
int Compiler::room_for(const Node& node) {
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

/// r0 = r0 OP r1
void Compiler::compute(const Node& node) {
  if (node.op == Op::shift_left || node.op == Op::shift_right) return shift(node);
  if (node.op == Op::divide || node.op == Op::remainder) return divide(node);
  alu(std::ranges::find(kInstructions, node.op, &std::pair<Op, std::uint8_t>::first)->second, 0, 1);
}

void Compiler::shift(const Node& node) {
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
void Compiler::divide(const Node& node) {
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

void Compiler::negate_if_negative(std::uint8_t sign, std::uint8_t number) {
  const Label end = label();
  jump_if_is(kJumpSignedGreaterEqual, sign, 0, end);
  alu_by(BPF_NEG, number, 0);
  place(end);
}

/// Whether it is known of a span's beginning alone: then it is there, among the values.
bool Compiler::read_of_beginning(std::uint8_t fact, std::uint8_t to) {
  const auto found = std::ranges::find(of_beginning_, fact);
  if (fact == 0 || found == of_beginning_.end()) return false;
  const auto behind = static_cast<std::uint64_t>(found - of_beginning_.begin());
  load(BPF_LDX | BPF_MEM | kDouble, to, kFrame, static_cast<int>(8 * (expression_.args().size() + behind)));
  return true;
}

/// The name of the thread, 16 bytes, to the frame.
void Compiler::comm_to(int at) {
  static_assert(kPiece == sizeof(usdt_event::comm), "one piece is the name of a thread");
  if (read_of_beginning(USDT_BEGIN_COMM, 0)) {
    store(kFrame, at, 0);
    read_of_beginning(USDT_BEGIN_COMM_REST, 0);
    return store(kFrame, at + 8, 0);
  }
  frame_address(1, at);
  set(2, kPiece);
  call(BPF_FUNC_get_current_comm);
}

void Compiler::field(HitField field) {
  using From = FieldReader::From;
  const FieldReader& reader = reader_of(field);
  if (read_of_beginning(reader.beginning, 0)) return;
  switch (reader.from) {
    case From::task:
      return task(reader.half == FieldReader::Half::high);
    case From::helper:
      call(reader.helper);
      if (reader.half == FieldReader::Half::low) low_half();
      if (reader.half == FieldReader::Half::high) alu_by(BPF_RSH, 0, 32);
      return;
    case From::duration:
      return load(BPF_LDX | BPF_MEM | kDouble, 0, kFrame, kDuration);
    case From::site:
      return load(BPF_LDX | BPF_MEM /* BPF_W */, 0, kFrame, kSite);
    case From::text:
    case From::other:
      return set(0, 0);
    case From::row:
      return;
  }
}

void Compiler::low_half() {
  alu_by(BPF_LSH, 0, 32);
  alu_by(BPF_RSH, 0, 32);
}

/// As usdt_pid_tgid() of hit.h: 0 in the tracer's namespace where it is not visible there.
void Compiler::task(bool group) {
  if (surroundings_.pidns_ino == 0) {
    call(BPF_FUNC_get_current_pid_tgid);
    return group ? alu_by(BPF_RSH, 0, 32) : low_half();
  }
  const Label end = label();
  set(3, 0);
  store(kFrame, kBuffer, 3);
  set(1, surroundings_.pidns_dev);
  set(2, surroundings_.pidns_ino);
  buffer_address(3);
  set(4, 8);
  call(BPF_FUNC_get_ns_current_pid_tgid);
  move(1, 0);
  set(0, 0);
  jump_if_is(kJumpNotEqual, 1, 0, end);
  load(BPF_LDX | BPF_MEM /* BPF_W */, 0, kFrame, kBuffer + (group ? 4 : 0));
  place(end);
}

void Compiler::frame_address(std::uint8_t to, int offset) {
  move(to, kFrame);
  alu_by(BPF_ADD, to, offset);
}

/// Goes to `yes` or to `no`.
void Compiler::branch(const Node& node, Label yes, Label no) {
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

void Compiler::comparison(const Node& node, Label yes, Label no) {
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

void Compiler::reals(const Node& node, Label yes, Label no) {
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

/// order_key() of what is in a register, with r2 and r3; to `odd` where it is no number.
void Compiler::make_order_key(std::uint8_t reg, ExpressionType type, Label odd) {
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

Result<Code> compile(const TypedExpression& expression, const Surroundings& surroundings) {
  return Compiler(expression, surroundings).run();
}

}  // namespace usdt::expr
