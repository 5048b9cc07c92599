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

}  // namespace usdt::expr
