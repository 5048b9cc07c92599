// SPDX-License-Identifier: BSD-2-Clause
#include "expr/text_reader.hpp"

namespace usdt::expr {

void TextReader::read_piece(const Node& text, int from, int to, Label ended) {
  if (text.op == Op::field) return text_field_to(static_cast<HitField>(text.bits), to);
  if (text.of.empty()) return read_memory(text, At{.word = from}, to, kStrings, [&] { set(2, kPiece + 1); });
  set(0, 0);
  store(kFrame, to, 0);
  store(kFrame, to + 8, 0);
  rest_of(text, from, 2);
  jump_if_is(BPF_JEQ, 2, 0, ended);
  read_memory(text, At{.word = from}, to, kBytes, [&] { rest_of(text, from, 2); });
}

void TextReader::rest_of(const Node& text, int from, std::uint8_t to) {
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

void TextReader::clear_behind_nul(int at) {
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

void TextReader::length_of(const Node& text, std::uint8_t to) {
  leaf(text.of[0], to);
  alu_by(BPF_OR, to,
         0);  // so that what verifiers learn of it is not about the place it came from, on each way its own
  jump_if_is(kJumpSignedLess, to, 0, undecided());
}

void TextReader::read_text(const Node& pointer, std::size_t from, std::size_t size, int to) {
  read_memory(pointer, At{.byte = from}, to, kStrings, [&] { set(2, size); });
  // Linux 6.1 says 0 for an empty text, and newer kernels 1.
  const Label counted = label();
  jump_if_is(kJumpNotEqual, 0, 0, counted);
  set(0, 1);
  place(counted);
}

void TextReader::text_address(const Node& pointer, const At& from) {
  leaf({.op = Op::value, .bits = pointer.bits}, 3);
  if (from.byte > 0) alu_by(BPF_ADD, 3, static_cast<std::int32_t>(from.byte));
  if (!from.word) return;
  load(BPF_LDX | BPF_MEM | kDouble, 4, kFrame, *from.word);
  alu(BPF_ADD, 3, 4);
}

}  // namespace usdt::expr
