// SPDX-License-Identifier: BSD-2-Clause
#include "expr/compile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "expr/beginning.hpp"
#include "expr/glob.hpp"
#include "expr/numbers.hpp"
#include "expr/row.hpp"
#include "expr/site_words.hpp"
#include "usdt/bpf/event.h"
#include "usdt/bpf/filter.h"

namespace usdt::expr {
namespace {

using Node = TypedExpression::Node;
using Op = Operator;

// Registers: r0 has the value computed last, r1 to r5 are free. What is behind the frame pointer is the question.
constexpr std::uint8_t kFrame = 10;

constexpr int kUnread = offsetof(usdt_question, unread);
constexpr int kSite = offsetof(usdt_question, site);
constexpr int kDuration = offsetof(usdt_question, duration);
constexpr int kScratch = offsetof(usdt_question, scratch);
// The scratch words: values that wait for others, and pieces of texts.
constexpr int kSpills = kScratch;
constexpr int kMostSpills = 5;
constexpr int kBuffer = kSpills + kMostSpills * 8;
constexpr std::size_t kPiece = 16;
static_assert(kBuffer + static_cast<int>(kPiece) + 8 <= static_cast<int>(sizeof(usdt_question)),
              "a piece of a text, its NUL, and one character more");

/// The distance of a jump has 16 bits.
constexpr std::size_t kMostInstructions = 16384;

// Opcodes (Documentation/bpf/standardization/instruction-set.rst), of 64 bits.
constexpr std::uint8_t kMove = 0xb0;
constexpr std::uint8_t kArithmeticShift = 0xc0;
constexpr std::uint8_t kJumpNotEqual = 0x50;
constexpr std::uint8_t kJumpSignedGreater = 0x60;
constexpr std::uint8_t kJumpSignedGreaterEqual = 0x70;
constexpr std::uint8_t kJumpLess = 0xa0;
constexpr std::uint8_t kJumpLessEqual = 0xb0;
constexpr std::uint8_t kJumpSignedLess = 0xc0;
constexpr std::uint8_t kJumpSignedLessEqual = 0xd0;
constexpr std::uint8_t kDouble = 0x18;
constexpr std::uint8_t kLoadImmediate = BPF_LD | BPF_IMM | kDouble;
constexpr std::uint8_t kAddConstant = BPF_ALU64;  // with BPF_ADD and BPF_K, which are both 0

/// A place in the code that jumps go to.
struct Label {
  std::size_t number = 0;
};

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

bool fits_immediate(std::uint64_t bits) { return static_cast<std::int64_t>(bits) == static_cast<std::int32_t>(bits); }

class Compiler {
 public:
  Compiler(const TypedExpression& expression, const Surroundings& surroundings)
      : expression_(expression), surroundings_(surroundings) {
    if (surroundings.of_span) of_beginning_ = beginning_facts(expression);
  }

  Result<Code> run() {
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
    if (code_.size() > kMostInstructions)
      return fail(ErrorKind::limit,
                  fmt::format("an expression of {} instructions: at most {} fit", code_.size(), kMostInstructions));
    return Code{finished(), std::move(table_)};
  }

 private:
  // --- instructions ---
  void emit(std::uint8_t code, std::uint8_t to, std::uint8_t from, int offset, std::int32_t immediate) {
    bpf_insn insn{};
    insn.code = code;
    insn.dst_reg = to & 15;
    insn.src_reg = from & 15;
    insn.off = static_cast<std::int16_t>(offset);
    insn.imm = immediate;
    code_.push_back(insn);
  }
  void move(std::uint8_t to, std::uint8_t from) { emit(BPF_ALU64 | kMove | BPF_X, to, from, 0, 0); }
  void alu(std::uint8_t op, std::uint8_t to, std::uint8_t from) { emit(BPF_ALU64 | op | BPF_X, to, from, 0, 0); }
  void alu_by(std::uint8_t op, std::uint8_t to, std::int32_t by) { emit(BPF_ALU64 | op | BPF_K, to, 0, 0, by); }
  void load(int code, std::uint8_t to, std::uint8_t base, int offset) {
    emit(static_cast<std::uint8_t>(code), to, base, offset, 0);
  }
  void store(std::uint8_t base, int offset, std::uint8_t from) {
    emit(BPF_STX | BPF_MEM | kDouble, base, from, offset, 0);
  }
  void store_byte(std::uint8_t base, int offset, std::uint8_t from) {
    emit(BPF_STX | BPF_MEM | BPF_B, base, from, offset, 0);
  }
  void call(std::int32_t helper) { emit(BPF_JMP | BPF_CALL, 0, 0, 0, helper); }
  void set(std::uint8_t to, std::uint64_t bits) {
    if (fits_immediate(bits)) return alu_by(kMove, to, static_cast<std::int32_t>(bits));
    emit(kLoadImmediate, to, 0, 0, static_cast<std::int32_t>(bits));
    emit(0, 0, 0, 0, static_cast<std::int32_t>(bits >> 32));
  }
  /// The address of what begins at word `word` of the table.
  void set_table_address(std::uint8_t to, std::size_t word) {
    emit(kLoadImmediate, to, BPF_PSEUDO_MAP_VALUE, 0, 0);
    emit(0, 0, 0, 0, static_cast<std::int32_t>(word * sizeof(std::uint64_t)));
  }

  // --- jumps ---
  Label label() {
    labels_.push_back(SIZE_MAX);
    return {labels_.size() - 1};
  }
  void place(Label label) { labels_[label.number] = code_.size(); }
  void jump(Label to) { jump_if(BPF_JA, 0, 0, to); }
  void jump_if(std::uint8_t op, std::uint8_t left, std::uint8_t right, Label to) {
    jumps_.push_back({code_.size(), to});
    emit(BPF_JMP | op | BPF_X, left, right, 0, 0);
    if (op == BPF_JA) code_.back().code = BPF_JMP | BPF_JA;
  }
  void jump_if_is(std::uint8_t op, std::uint8_t left, std::int32_t right, Label to) {
    jumps_.push_back({code_.size(), to});
    emit(BPF_JMP | op | BPF_K, left, 0, 0, right);
  }
  /// Verifiers refuse code that nothing gets to, such as an answer that is never given.
  std::vector<bpf_insn> finished() {
    std::vector<std::size_t> target(code_.size(), SIZE_MAX);
    for (const auto& [at, to] : jumps_) target[at] = labels_[to.number];
    const std::vector<bool> reached = find_reached(target);
    std::vector<std::size_t> moved_to(code_.size() + 1);
    for (std::size_t i = 0; i < code_.size(); ++i) moved_to[i + 1] = moved_to[i] + (reached[i] ? 1 : 0);
    std::vector<bpf_insn> kept;
    for (std::size_t i = 0; i < code_.size(); ++i) {
      if (!reached[i]) continue;
      kept.push_back(code_[i]);
      if (target[i] != SIZE_MAX)
        kept.back().off = static_cast<std::int16_t>(static_cast<std::int64_t>(moved_to[target[i]]) -
                                                    static_cast<std::int64_t>(moved_to[i]) - 1);
    }
    return kept;
  }

  [[nodiscard]] std::vector<bool> find_reached(const std::vector<std::size_t>& target) const {
    std::vector<bool> reached(code_.size());
    std::vector<std::size_t> todo{0};
    while (!todo.empty()) {
      std::size_t at = todo.back();
      todo.pop_back();
      while (at < code_.size() && !reached[at]) {
        reached[at] = true;
        if (target[at] != SIZE_MAX) todo.push_back(target[at]);
        if (code_[at].code == (BPF_JMP | BPF_JA)) break;
        ++at;
      }
    }
    return reached;
  }

  // --- values ---
  static bool is_leaf(const Node& node) {
    return node.op == Op::integer || node.op == Op::real || node.op == Op::value;
  }

  /// With r4 and r5, where the value is of a list.
  void leaf(const Node& node, std::uint8_t to) {
    if (node.op != Op::value) return set(to, node.bits);
    const std::vector<TypedExpression::OfList>& lists = expression_.of_lists();
    const auto list = std::ranges::find(lists, node.bits, &TypedExpression::OfList::value);
    if (list == lists.end()) return read(node.bits, to);
    if (list->element) {
      leaf({.op = Op::value, .bits = list->element->length}, 4);
      set(5, list->element->index);
      jump_if(kJumpLessEqual, 4, 5, undecided_);
    }
    read(node.bits, to);
    if (list->counts) count(*list->counts, to);
  }

  void read(std::uint64_t value, std::uint8_t to) {
    load(BPF_LDX | BPF_MEM /* BPF_W */, to, kFrame, kUnread);
    jump_if_is(BPF_JSET, to, 1 << value, undecided_);
    load(BPF_LDX | BPF_MEM | kDouble, to, kFrame, static_cast<int>(8 * value));
  }

  /// Makes the length of a list of what was read for it, as Event does, with r5.
  void count(const ElementCount& counts, std::uint8_t to) {
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
  void value(const Node& node) {
    if (is_leaf(node)) return leaf(node, 0);
    if (node.op == Op::field) return field(static_cast<HitField>(node.bits));
    if (node.op == Op::negate || node.op == Op::complement) {
      value(node.of[0]);
      if (node.op == Op::negate) return alu_by(BPF_NEG, 0, 0);
      return alu_by(BPF_XOR, 0, -1);
    }
    if (node.op == Op::conditional) return choice(node);
    if (node.op == Op::log2_bucket) return bucket(node);
    if (node.op == Op::hex || node.op == Op::ntop) return value(node.of[0]);
    if (is_truth(node)) return truth(node);
    both(node);
    compute(node);
  }

  static bool is_truth(const Node& node) {
    return is_comparison(node.op) || node.op == Op::matches || node.op == Op::logical_and ||
           node.op == Op::logical_or || node.op == Op::logical_not;
  }

  void truth(const Node& node) {
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

  void choice(const Node& node) {
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

  // --- rows ---
  void row(const Node& root) {
    const RowLayout layout = row_layout(root);
    for (std::size_t i = 0; i < layout.keys.size(); ++i) {
      const Node& key = root.of[i + 1].of[0];
      const int at = kRow + static_cast<int>(offsetof(usdt_row, key)) + static_cast<int>(layout.keys[i].offset);
      if (key.type == ExpressionType::stack) continue;  // the program's own affair (put_stacks() of bpf/trace/stacks.h)
      if (key.type == ExpressionType::text && !is_site_word(key)) {
        text_key(key, at, layout.keys[i].size);
      } else {
        value(key);
        store(kFrame, at, 0);
      }
    }
    layout.value ? value_of_row(root.of.back().of[0]) : set(0, 0);
    store(kFrame, offsetof(usdt_question, values), 0);  // nothing is read any more
  }

  /// Of a real the order_key(), so that the smallest and the largest are those of the reals.
  void value_of_row(const Node& node) {
    value(node);
    if (is_real(node.type)) make_order_key(0, node.type, undecided_);
  }

  /// What is behind a text is 0 beforehand. An argument's last byte says how many bytes of it there are: two texts
  /// that differ by NULs at their ends are two keys.
  void text_key(const Node& key, int at, std::uint32_t size) {
    if (key.op != Op::text_of) return comm_to(at);
    if (ends_at_nul(key)) {
      const std::uint64_t room = key.of.empty() ? size : key.of[0].bits + 1;
      read_text(key, 0, static_cast<std::size_t>(std::min<std::uint64_t>(size, room)), at);
      alu_by(BPF_SUB, 0, 1);
    } else {
      read_key(key, at, static_cast<std::int32_t>(size - 1));
    }
    store_byte(kFrame, at + static_cast<int>(size) - 1, 0);
  }

  /// Of a text whose length is known at most `most` bytes; r0: how many.
  void read_key(const Node& key, int at, std::int32_t most) {
    const auto count = [&](std::uint8_t to) {
      const Label fits = label();
      length_of(key, to);
      jump_if_is(kJumpLessEqual, to, most, fits);
      set(to, static_cast<std::uint64_t>(most));
      place(fits);
    };
    const Label done = label();
    count(0);
    jump_if_is(BPF_JEQ, 0, 0, done);
    read_memory(key, At{}, at, kBytes, [&] { count(2); });
    count(0);
    place(done);
  }

  /// As log2_bucket() of numbers.cpp, of what is in r0.
  void bucket(const Node& node) {
    const auto sub_bits = static_cast<std::int32_t>(node.of[1].bits);
    const Label end = label();
    value(node.of[0]);
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

  /// Of two operands the values in r0 and r1.
  void both(const Node& node) {
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
    value(left);
    const int spill = kSpills + 8 * std::min(spilled_, kMostSpills - 1);
    nested_ |= spilled_ >= kMostSpills;
    store(kFrame, spill, 0);
    ++spilled_;
    value(right);
    --spilled_;
    move(1, 0);
    load(BPF_LDX | BPF_MEM | kDouble, 0, kFrame, spill);
  }

  /// r0 = r0 OP r1
  void compute(const Node& node) {
    if (node.op == Op::shift_left || node.op == Op::shift_right) return shift(node);
    if (node.op == Op::divide || node.op == Op::remainder) return divide(node);
    alu(std::ranges::find(kInstructions, node.op, &std::pair<Op, std::uint8_t>::first)->second, 0, 1);
  }

  void shift(const Node& node) {
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
  void divide(const Node& node) {
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

  void negate_if_negative(std::uint8_t sign, std::uint8_t number) {
    const Label end = label();
    jump_if_is(kJumpSignedGreaterEqual, sign, 0, end);
    alu_by(BPF_NEG, number, 0);
    place(end);
  }

  /// Whether it is known of a span's beginning alone: then it is there, among the values.
  bool read_of_beginning(std::uint8_t fact, std::uint8_t to) {
    const auto found = std::ranges::find(of_beginning_, fact);
    if (fact == 0 || found == of_beginning_.end()) return false;
    const auto behind = static_cast<std::uint64_t>(found - of_beginning_.begin());
    load(BPF_LDX | BPF_MEM | kDouble, to, kFrame, static_cast<int>(8 * (expression_.args().size() + behind)));
    return true;
  }

  /// The name of the thread, 16 bytes, to the frame.
  void comm_to(int at) {
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

  void field(HitField field) {
    if (read_of_beginning(beginning_fact(field), 0)) return;
    switch (field) {
      case HitField::pid:
      case HitField::tid:
        return task(field == HitField::pid);
      case HitField::cpu:
        return call(BPF_FUNC_get_smp_processor_id);
      case HitField::uid:
        call(BPF_FUNC_get_current_uid_gid);
        return low_half();
      case HitField::gid:
        call(BPF_FUNC_get_current_uid_gid);
        return alu_by(BPF_RSH, 0, 32);
      case HitField::cgroup:
        return call(BPF_FUNC_get_current_cgroup_id);
      case HitField::nsecs:
        return call(BPF_FUNC_ktime_get_ns);
      case HitField::duration:
        return load(BPF_LDX | BPF_MEM | kDouble, 0, kFrame, kDuration);
      case HitField::comm:
        return set(0, 0);  // compared as a text (matches())
      case HitField::provider:
      case HitField::name:
      case HitField::ip:
      case HitField::probe:
        return load(BPF_LDX | BPF_MEM /* BPF_W */, 0, kFrame, kSite);  // as a key (TypedExpression::at_site())
      case HitField::elapsed:
        return set(0, 0);  // check() makes a difference of it
      case HitField::ustack:
      case HitField::kstack:
        return;  // the program puts them into the row (put_stacks() of bpf/trace/stacks.h)
    }
  }

  void low_half() {
    alu_by(BPF_LSH, 0, 32);
    alu_by(BPF_RSH, 0, 32);
  }

  /// As usdt_pid_tgid() of hit.h: 0 in the tracer's namespace where it is not visible there.
  void task(bool group) {
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

  void frame_address(std::uint8_t to, int offset) {
    move(to, kFrame);
    alu_by(BPF_ADD, to, offset);
  }
  void buffer_address(std::uint8_t to) { frame_address(to, kBuffer); }

  // --- conditions ---
  /// Goes to `yes` or to `no`.
  void branch(const Node& node, Label yes, Label no) {
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

  void comparison(const Node& node, Label yes, Label no) {
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

  void reals(const Node& node, Label yes, Label no) {
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
  void make_order_key(std::uint8_t reg, ExpressionType type, Label odd) {
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

  // --- texts ---
  static bool is_prefix(const Node& node) { return static_cast<TextMatch>(node.bits) == TextMatch::prefix; }

  void matches(const Node& node, Label yes, Label no) {
    if (static_cast<TextMatch>(node.bits) == TextMatch::glob) return matches_glob(node, yes, no);
    matches_literal(node, yes, no);
  }

  void matches_literal(const Node& node, Label yes, Label no) {
    const bool prefix = is_prefix(node);
    if (node.of[0].op == Op::field) {
      if (node.text.size() > 15) return jump(no);
      comm_to(kBuffer);
      compare_buffer(node.text, prefix ? node.text.size() : node.text.size() + 1, no);
      return jump(yes);
    }
    if (!ends_at_nul(node.of[0])) return matches_with_length(node, yes, no);
    if (!node.of[0].of.empty()) return matches_array(node, yes, no);
    std::string_view rest = node.text;
    std::size_t from = 0;
    while (rest.size() > kPiece) {
      read_text(node.of[0], from, kPiece + 1);
      jump_if_is(kJumpNotEqual, 0, kPiece + 1, no);
      compare_buffer(rest, kPiece, no);
      rest.remove_prefix(kPiece);
      from += kPiece;
    }
    // With its NUL; and of a longer text one character more, so that its length tells.
    read_text(node.of[0], from, rest.size() + (prefix ? 1 : 2));
    jump_if_is(kJumpNotEqual, 0, static_cast<std::int32_t>(rest.size() + 1), no);
    compare_buffer(rest, rest.size(), no);
    jump(yes);
  }

  /// Of a text whose length is known that comes first, and nothing behind it is read.
  void matches_with_length(const Node& node, Label yes, Label no) {
    length_of(node.of[0], 0);
    jump_if_is(is_prefix(node) ? kJumpLess : kJumpNotEqual, 0, static_cast<std::int32_t>(node.text.size()), no);
    compare_bytes(node.of[0], node.text, no);
    jump(yes);
  }

  /// Of an array of characters: a text that fills it has no NUL.
  void matches_array(const Node& node, Label yes, Label no) {
    const std::uint64_t room = node.of[0].of[0].bits;
    if (node.text.size() > room) return jump(no);
    std::string bytes = node.text;
    if (!is_prefix(node) && bytes.size() < room) bytes.push_back('\0');
    compare_bytes(node.of[0], bytes, no);
    jump(yes);
  }

  // --- texts of which no literal says how far they go: piece by piece, in a loop ---
  /// A word of the scratch room, where it is free.
  int spill(int number) {
    nested_ |= spilled_ + number >= kMostSpills;
    return kSpills + 8 * std::min(spilled_ + number, kMostSpills - 1);
  }

  static bool is_array(const Node& text) { return !text.of.empty() && ends_at_nul(text); }
  /// The name of a thread, which ends within one piece.
  static bool is_short(const Node& text) { return text.op == Op::field; }

  /// Does `body` for each piece, at `from` in the text, until it has left, or as much was looked at as there is to look
  /// at: then there is no answer.
  template <class Body>
  void for_each_piece(int from, bool once, const Body& body) {
    const Label again = label();
    set(0, 0);
    store(kFrame, from, 0);
    place(again);
    body();
    if (once) return jump(undecided_);
    load(BPF_LDX | BPF_MEM | kDouble, 0, kFrame, from);
    alu_by(BPF_ADD, 0, kPiece);
    store(kFrame, from, 0);
    jump_if_is(kJumpLess, 0, static_cast<std::int32_t>(kLongestLook), again);
    jump(undecided_);
  }

  /// Of a piece at word `from` of the frame at most kPiece characters to the frame, and a NUL where the text has none
  /// known length. To `ended` where the text has none there. Before Linux 5.12 what is read to must have been written
  /// where how much is not a constant.
  void read_piece(const Node& text, int from, int to, Label ended) {
    if (text.op == Op::field) return comm_to(to);
    if (text.of.empty()) return read_memory(text, At{.word = from}, to, kStrings, [&] { set(2, kPiece + 1); });
    set(0, 0);
    store(kFrame, to, 0);
    store(kFrame, to + 8, 0);
    rest_of(text, from, 2);
    jump_if_is(BPF_JEQ, 2, 0, ended);
    read_memory(text, At{.word = from}, to, kBytes, [&] { rest_of(text, from, 2); });
  }

  /// How much of a text with a length, or of an array, is in a piece; with r4.
  void rest_of(const Node& text, int from, std::uint8_t to) {
    const Label any = label();
    const Label fits = label();
    if (is_array(text))
      set(to, text.of[0].bits);
    else
      length_of(text, to);
    load(BPF_LDX | BPF_MEM | kDouble, 4, kFrame, from);
    jump_if(BPF_JGT, to, 4, any);
    set(to, 0);
    jump(fits);
    place(any);
    alu(BPF_SUB, to, 4);
    jump_if_is(kJumpLessEqual, to, kPiece, fits);
    set(to, kPiece);
    place(fits);
  }

  /// The literal that the pattern begins with comes first: it rejects most. Then the automaton of Glob. Verifiers keep
  /// 8,192 branches in mind at once: characters have none, but those of the last piece of a text with a length.
  void matches_glob(const Node& node, Label yes, Label no) {
    const Glob glob = *Glob::parse(node.text);
    const Node& text = node.of[0];
    const bool at_nul = ends_at_nul(text);
    const int from = spill(0), state = spill(1);
    const Label begins = label(), last = label(), ended = label();
    Node beginning = node;
    beginning.text = Glob::beginning(node.text).text;
    beginning.bits = static_cast<std::uint64_t>(TextMatch::prefix);
    if (!beginning.text.empty()) matches_literal(beginning, begins, no);
    place(begins);
    const std::size_t table = table_.size();
    for (const Glob::Step& step : glob.steps(at_nul)) table_.insert(table_.end(), {step.takes, step.stays});
    set(0, glob.start());
    store(kFrame, state, 0);
    for_each_piece(from, is_short(text), [&] {
      if (at_nul) {
        read_piece(text, from, kBuffer, ended);
      } else {
        rest_of(text, from, 0);
        jump_if_is(kJumpLess, 0, kPiece, last);
        read_memory(text, At{.word = from}, kBuffer, kBytes, [&] { set(2, kPiece); });
      }
      load(BPF_LDX | BPF_MEM | kDouble, 4, kFrame, state);
      set_table_address(5, table);
      for (int i = 0; i < static_cast<int>(kPiece); ++i) take_character(i);
      store(kFrame, state, 4);
      jump_if_is(BPF_JEQ, 4, 0, no);
      if (const std::uint64_t decides = (at_nul ? Glob::kEnded : 0) | (glob.open_ended() ? Glob::kMatched : 0))
        jump_if_has(4, decides, yes);
    });
    place(last);  // (which nothing goes to where a NUL is the end)
    if (!at_nul) last_piece(text, from, state, table, ended);
    place(ended);
    load(BPF_LDX | BPF_MEM | kDouble, 4, kFrame, state);
    jump_if_has(4, Glob::kMatched, yes);
    jump(no);
  }

  /// What there is of a text with a length, less than a piece.
  void last_piece(const Node& text, int from, int state, std::size_t table, Label ended) {
    read_piece(text, from, kBuffer, ended);
    rest_of(text, from, 0);
    load(BPF_LDX | BPF_MEM | kDouble, 4, kFrame, state);
    set_table_address(5, table);
    for (int i = 0; i < static_cast<int>(kPiece); ++i) {
      const Label more = label();
      jump_if_is(kJumpNotEqual, 0, i, more);
      store(kFrame, state, 4);
      jump(ended);
      place(more);
      take_character(i);
    }
    store(kFrame, state, 4);
  }

  /// Character `i` of a piece: r4, the state, becomes the next one, with r1, r2 and r3. In r5 is where Glob::steps()
  /// is.
  void take_character(int i) {
    load(BPF_LDX | BPF_MEM | 0x10 /* BPF_B */, 1, kFrame, kBuffer + i);
    alu_by(BPF_LSH, 1, std::countr_zero(sizeof(Glob::Step)));
    move(2, 5);
    alu(BPF_ADD, 2, 1);
    load(BPF_LDX | BPF_MEM | kDouble, 3, 2, offsetof(Glob::Step, takes));
    load(BPF_LDX | BPF_MEM | kDouble, 2, 2, offsetof(Glob::Step, stays));
    alu(BPF_AND, 3, 4);
    alu_by(BPF_LSH, 3, 1);
    alu(BPF_AND, 4, 2);
    alu(BPF_OR, 4, 3);
  }

  void jump_if_has(std::uint8_t reg, std::uint64_t bits, Label to) {
    set(0, bits);
    jump_if(BPF_JSET, reg, 0, to);
  }

  /// Both are read before they are compared: what cannot be read has no answer. Pieces are filled up with NULs; where
  /// one has a length, and perhaps NULs within, how much there is is compared, too.
  void texts_equal(const Node& node, Label yes, Label no) {
    const int from = spill(0), length = spill(1);
    nested_ |= spilled_ > 0;
    const std::array<int, 2> buffers{kBuffer, kSpills + 2 * 8};
    const bool counted = !ends_at_nul(node.of[0]) || !ends_at_nul(node.of[1]);
    for_each_piece(from, is_short(node.of[0]) || is_short(node.of[1]), [&] {
      for (std::size_t i = 0; i < 2; ++i) {
        const Label read = label();
        set(0, 0);
        for (int word = 0; word < 2; ++word) store(kFrame, buffers[i] + 8 * word, 0);
        read_piece(node.of[i], from, buffers[i], read);
        if (is_array(node.of[i])) clear_behind_nul(buffers[i]);
        place(read);
        if (!counted) continue;
        count_piece(node.of[i], from, buffers[i]);
        if (i == 0) store(kFrame, length, 0);
      }
      if (counted) {
        load(BPF_LDX | BPF_MEM | kDouble, 1, kFrame, length);
        jump_if(kJumpNotEqual, 0, 1, no);
      }
      for (int word = 0; word < 2; ++word) {
        load(BPF_LDX | BPF_MEM | kDouble, 1, kFrame, buffers[0] + 8 * word);
        load(BPF_LDX | BPF_MEM | kDouble, 2, kFrame, buffers[1] + 8 * word);
        jump_if(kJumpNotEqual, 1, 2, no);
      }
      if (counted) return jump_if_is(kJumpLess, 0, kPiece, yes);
      load(BPF_LDX | BPF_MEM | 0x10 /* BPF_B */, 0, kFrame, buffers[0] + static_cast<int>(kPiece) - 1);
      jump_if_is(BPF_JEQ, 0, 0, yes);
    });
  }

  /// r0: how many characters there are in a piece.
  void count_piece(const Node& text, int from, int at) {
    if (!ends_at_nul(text)) return rest_of(text, from, 0);
    const Label counted = label();
    for (int i = 0; i < static_cast<int>(kPiece); ++i) {
      set(0, static_cast<std::uint64_t>(i));
      load(BPF_LDX | BPF_MEM | 0x10 /* BPF_B */, 1, kFrame, at + i);
      jump_if_is(BPF_JEQ, 1, 0, counted);
    }
    set(0, kPiece);
    place(counted);
  }

  /// Makes NULs of what is behind the first one in a piece; r0, r1 and r2 are lost.
  void clear_behind_nul(int at) {
    const Label none = label(), done = label();
    for (const int word : {at, at + 8}) {
      const Label whole = label();
      load(BPF_LDX | BPF_MEM | kDouble, 0, kFrame, word);
      // The lowest of these bits is that of the first byte that is 0.
      move(1, 0);
      set(2, 0x0101'0101'0101'0101);
      alu(BPF_SUB, 1, 2);
      move(2, 0);
      alu_by(BPF_XOR, 2, -1);
      alu(BPF_AND, 1, 2);
      set(2, 0x8080'8080'8080'8080);
      alu(BPF_AND, 1, 2);
      jump_if_is(BPF_JEQ, 1, 0, whole);
      move(2, 1);
      alu_by(BPF_NEG, 2, 0);
      alu(BPF_AND, 1, 2);
      alu_by(BPF_RSH, 1, 7);
      alu_by(BPF_SUB, 1, 1);
      alu(BPF_AND, 0, 1);
      store(kFrame, word, 0);
      jump(word == at ? none : done);
      place(whole);
    }
    jump(done);
    place(none);
    set(0, 0);
    store(kFrame, at + 8, 0);
    place(done);
  }

  void compare_bytes(const Node& subject, std::string_view bytes, Label no) {
    for (std::size_t from = 0; from < bytes.size(); from += kPiece) {
      const std::string_view piece = bytes.substr(from, kPiece);
      read_memory(subject, At{.byte = from}, kBuffer, kBytes, [&] { set(2, piece.size()); });
      compare_buffer(piece, piece.size(), no);
    }
  }

  /// As capture_bytes() of bpf/trace.bpf.c: one below 0 is none.
  void length_of(const Node& text, std::uint8_t to) {
    leaf(text.of[0], to);
    alu_by(BPF_OR, to,
           0);  // so that what verifiers learn of it is not about the place it came from, on each way its own
    jump_if_is(kJumpSignedLess, to, 0, undecided_);
  }

  /// At most `size` bytes with the closing NUL of what `pointer` points to, less `from`, to the frame; r0: how many.
  void read_text(const Node& pointer, std::size_t from, std::size_t size, int to = kBuffer) {
    read_memory(pointer, At{.byte = from}, to, kStrings, [&] { set(2, size); });
    // For an empty text 6.1 says 0 and newer kernels 1.
    const Label counted = label();
    jump_if_is(kJumpNotEqual, 0, 0, counted);
    set(0, 1);
    place(counted);
  }

  /// Helpers that read memory of the process, and of the kernel.
  struct Readers {
    std::int32_t of_process;
    std::int32_t of_kernel;
  };
  static constexpr Readers kStrings{BPF_FUNC_probe_read_user_str, BPF_FUNC_probe_read_kernel_str};
  static constexpr Readers kBytes{BPF_FUNC_probe_read_user, BPF_FUNC_probe_read_kernel};

  /// Where in a text: behind so many bytes, and as many as a word of the frame says.
  struct At {
    std::size_t byte = 0;
    std::optional<int> word = {};
  };

  /// What `pointer` points to, from there on, to the frame. `set_size` puts into r2 how much, and changes nothing else;
  /// r0: what the helper says of it.
  template <class SetSize>
  void read_memory(const Node& pointer, const At& from, int to, const Readers& readers, const SetSize& set_size) {
    const Label done = label();
    const auto read = [&](std::int32_t helper) {
      frame_address(1, to);
      set_size();
      text_address(pointer, from);
      call(helper);
    };
    if (surroundings_.kernel_half != 0) {
      const Label of_process = label();
      text_address(pointer, from);
      set(2, surroundings_.kernel_half);
      jump_if(kJumpLess, 3, 2, of_process);
      read(readers.of_kernel);
      jump_if_is(kJumpSignedLess, 0, 0, undecided_);
      jump(done);
      place(of_process);
    }
    read(readers.of_process);
    if (surroundings_.kernel_half == 0) wait_for_page(pointer, from, to, [&] { read(readers.of_process); });
    jump_if_is(kJumpSignedLess, 0, 0, undecided_);
    place(done);
  }

  /// Once more, where the page is not in memory and the program may wait for it.
  template <class Read>
  void wait_for_page(const Node& pointer, const At& from, int to, const Read& read) {
    if (!surroundings_.may_wait) return;
    const Label there = label();
    jump_if_is(kJumpSignedGreaterEqual, 0, 0, there);
    frame_address(1, to);
    set(2, 1);
    text_address(pointer, from);
    call(BPF_FUNC_copy_from_user);
    read();
    place(there);
  }

  /// Leaves in r3 the address of the text, with r4.
  void text_address(const Node& pointer, const At& from) {
    leaf({.op = Op::value, .bits = pointer.bits}, 3);
    if (from.byte > 0) alu_by(BPF_ADD, 3, static_cast<std::int32_t>(from.byte));
    if (!from.word) return;
    load(BPF_LDX | BPF_MEM | kDouble, 4, kFrame, *from.word);
    alu(BPF_ADD, 3, 4);
  }

  /// To `no` where the first `size` bytes of the buffer are not those of `text` and its NUL.
  void compare_buffer(std::string_view text, std::size_t size, Label no) {
    std::string bytes(text.substr(0, size));
    bytes.resize(size);  // a NUL where the text ends before
    for (std::size_t at = 0; at < size;) {
      const std::size_t left = size - at;
      const std::size_t width = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at, width);
      const int load_size = width == 8 ? kDouble : width == 4 ? 0 : width == 2 ? 0x08 : 0x10;
      load(BPF_LDX | BPF_MEM | load_size, 1, kFrame, kBuffer + static_cast<int>(at));
      set(2, word);
      jump_if(kJumpNotEqual, 1, 2, no);
      at += width;
    }
  }

  const TypedExpression& expression_;
  const Surroundings& surroundings_;
  std::vector<std::uint8_t> of_beginning_;
  std::vector<bpf_insn> code_;
  std::vector<std::uint64_t> table_;
  std::vector<std::size_t> labels_;
  std::vector<std::pair<std::size_t, Label>> jumps_;
  Label undecided_ = label();
  int spilled_ = 0;
  bool nested_ = false;
};

}  // namespace

Result<Code> compile(const TypedExpression& expression, const Surroundings& surroundings) {
  return Compiler(expression, surroundings).run();
}

void set_table(std::span<bpf_insn> instructions, int map) noexcept {
  for (bpf_insn& insn : instructions)
    if (insn.code == kLoadImmediate && insn.src_reg == BPF_PSEUDO_MAP_VALUE) insn.imm = map;
}

bool needs_row(std::span<const bpf_insn> code) noexcept {
  return std::ranges::any_of(code, [](const bpf_insn& insn) {
    const bool stores = BPF_CLASS(insn.code) == BPF_STX && insn.dst_reg == kFrame && insn.off >= kRow;
    return stores || (insn.code == kAddConstant && insn.imm >= kRow);
  });
}

std::vector<bpf_insn> in_frame(std::span<const bpf_insn> code, std::int16_t question, std::int16_t row) {
  const auto moved = [&](int offset) { return offset < kRow ? offset + question : offset - kRow + row; };
  std::vector<bpf_insn> placed(code.begin(), code.end());
  for (std::size_t i = 0; i < placed.size(); ++i) {
    bpf_insn& insn = placed[i];
    const unsigned kind = BPF_CLASS(insn.code);
    if ((kind == BPF_LDX && insn.src_reg == kFrame) || (kind == BPF_STX && insn.dst_reg == kFrame))
      insn.off = static_cast<std::int16_t>(moved(insn.off));
    // An address: r = r10; r += imm
    const bool copies = insn.code == (BPF_ALU64 | kMove | BPF_X) && insn.src_reg == kFrame;
    if (copies && i + 1 < placed.size()) {
      bpf_insn& add = placed[++i];
      add.imm = moved(add.imm);
    }
  }
  return placed;
}

}  // namespace usdt::expr
