// SPDX-License-Identifier: BSD-2-Clause
#include "expr/row_compiler.hpp"

#include <algorithm>
#include <cstddef>

#include "expr/row.hpp"
#include "expr/site_words.hpp"

namespace usdt::expr {

void RowCompiler::row(const Node& root) {
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

/// A real is stored as its order_key(), so that the smallest and the largest are those of the reals.
void RowCompiler::value_of_row(const Node& node) {
  value(node);
  if (is_real(node.type)) make_order_key(0, node.type, undecided());
}

/// The bytes behind a text are 0 beforehand. An argument's last byte says how many bytes of it there are: two texts
/// that differ by NULs at their ends are two keys.
void RowCompiler::text_key(const Node& key, int at, std::uint32_t size) {
  if (key.op == Op::fingerprint) return fingerprint_key(key.of[0], at);
  if (key.op != Op::text_of) return text_field_to(static_cast<HitField>(key.bits), at);
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
void RowCompiler::fingerprint_key(const Node& text, int at) {
  const int from = scratch_.free(0);
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
void RowCompiler::add_to_fingerprint(int at) {
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

/// Reads at most `most` bytes of a text whose length is known; r0: how many.
void RowCompiler::read_key(const Node& key, int at, std::int32_t most) {
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

}  // namespace usdt::expr
