// SPDX-License-Identifier: BSD-2-Clause
// Keys and values of tables.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "expr/compiler.hpp"
#include "expr/row.hpp"
#include "expr/site_words.hpp"

namespace usdt::expr {

void Compiler::row(const Node& root) {
  const RowLayout layout = row_layout(root);
  for (std::size_t i = 0; i < layout.keys.size(); ++i) {
    const Node& key = root.of[i + 1].of[0];
    const int at = kRow + static_cast<int>(offsetof(usdt_row, key)) + static_cast<int>(layout.keys[i].offset);
    if (key.type == ExpressionType::stack) continue;  // the program's own affair (put_stacks() of bpf/trace/stacks.h)
    if (key.type == ExpressionType::text && !is_site_word(key)) {
      text_key(key, at, layout.keys[i].size);
    } else {
      value(key);
      if (is_real(key.type)) key_of_real(key.type);
      store(kFrame, at, 0);
    }
  }
  layout.value ? value_of_row(root.of.back().of[0]) : set(0, 0);
  store(kFrame, offsetof(usdt_question, values), 0);  // nothing is read any more
}

/// Of a real the order_key(), so that the smallest and the largest are those of the reals.
void Compiler::value_of_row(const Node& node) {
  value(node);
  if (is_real(node.type)) make_order_key(0, node.type, undecided_);
}

/// What is behind a text is 0 beforehand. An argument's last byte says how many bytes of it there are: two texts
/// that differ by NULs at their ends are two keys.
void Compiler::text_key(const Node& key, int at, std::uint32_t size) {
  if (key.op == Op::fingerprint) return fingerprint_key(key.of[0], at);
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

/// As Fingerprint of row.hpp, whose words are made in the row itself.
void Compiler::fingerprint_key(const Node& text, int at) {
  const int from = spill(0);
  const Label again = label(), read = label(), done = label(), end = label();
  const bool at_nul = ends_at_nul(text);
  for (int i = 0; i < 2; ++i) {
    set(0, Fingerprint::kStart[static_cast<std::size_t>(i)]);
    store(kFrame, at + 8 * i, 0);
  }
  set(0, 0);
  store(kFrame, from, 0);
  place(again);
  set(0, 0);
  store(kFrame, kBuffer, 0);
  store(kFrame, kBuffer + 8, 0);
  read_piece(text, from, kBuffer, read);
  if (is_array(text)) clear_behind_nul(kBuffer);
  place(read);
  for (int word = 0; word < 2; ++word) {
    load(BPF_LDX | BPF_MEM | kDouble, 1, kFrame, kBuffer + 8 * word);
    add_to_fingerprint(at);
  }
  if (at_nul) {
    load(BPF_LDX | BPF_MEM | 0x10 /* BPF_B */, 0, kFrame, kBuffer + static_cast<int>(kPiece) - 1);
    jump_if_is(BPF_JEQ, 0, 0, done);
  } else {
    rest_of(text, from, 0);
    jump_if_is(kJumpLess, 0, kPiece, done);
  }
  load(BPF_LDX | BPF_MEM | kDouble, 0, kFrame, from);
  alu_by(BPF_ADD, 0, kPiece);
  store(kFrame, from, 0);
  jump_if_is(kJumpLess, 0, static_cast<std::int32_t>(kLongestLook), again);
  load(BPF_LDX | BPF_MEM | kDouble, 0, kFrame, at + 8);
  alu_by(BPF_OR, 0, 1);
  store(kFrame, at + 8, 0);
  jump(end);
  place(done);
  if (!at_nul) {
    length_of(text, 1);
    add_to_fingerprint(at);
  }
  load(BPF_LDX | BPF_MEM | kDouble, 0, kFrame, at + 8);
  alu_by(BPF_AND, 0, -2);
  store(kFrame, at + 8, 0);
  place(end);
}

/// Takes up the word in r1, with r2 and r3.
void Compiler::add_to_fingerprint(int at) {
  for (int i = 0; i < 2; ++i) {
    load(BPF_LDX | BPF_MEM | kDouble, 2, kFrame, at + 8 * i);
    alu(BPF_XOR, 2, 1);
    set(3, Fingerprint::kFactors[static_cast<std::size_t>(i)]);
    alu(BPF_MUL, 2, 3);
    move(3, 2);
    alu_by(BPF_RSH, 3, 32);
    alu_by(BPF_LSH, 2, 32);
    alu(BPF_OR, 2, 3);
    store(kFrame, at + 8 * i, 2);
  }
}

/// Of a text whose length is known at most `most` bytes; r0: how many.
void Compiler::read_key(const Node& key, int at, std::int32_t most) {
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
void Compiler::bucket(const Node& node) {
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

/// As key_of_real() of numbers.cpp, of what is in r0.
void Compiler::key_of_real(ExpressionType type) {
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

/// As log2_bucket_of_real() of numbers.cpp.
void Compiler::bucket_of_real(const Node& node) {
  const ExpressionType type = node.of[0].type;
  const bool narrow = type == ExpressionType::real32;
  const Label end = label();
  value(node.of[0]);
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

/// Of a real: by halves, among bounds that are known.
void Compiler::linear_bucket(const Node& node) {
  const Label end = label();
  value(node.of[0]);
  make_order_key(0, node.of[0].type, undecided_);
  search(node, 0, node.of.size() - 1, end);
  place(end);
}

/// Of what is not below `first` of the bounds, and below those from `last` on.
void Compiler::search(const Node& node, std::size_t first, std::size_t last, Label end) {
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
