// SPDX-License-Identifier: BSD-2-Clause
// Texts: compared with literals, patterns and each other. What no literal says the end of is looked at piece by piece,
// in a loop.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "expr/compiler.hpp"
#include "expr/glob.hpp"

namespace usdt::expr {

void Compiler::matches(const Node& node, Label yes, Label no) {
  if (static_cast<TextMatch>(node.bits) == TextMatch::glob) return matches_glob(node, yes, no);
  matches_literal(node, yes, no);
}

void Compiler::matches_literal(const Node& node, Label yes, Label no) {
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
void Compiler::matches_with_length(const Node& node, Label yes, Label no) {
  length_of(node.of[0], 0);
  jump_if_is(is_prefix(node) ? kJumpLess : kJumpNotEqual, 0, static_cast<std::int32_t>(node.text.size()), no);
  compare_bytes(node.of[0], node.text, no);
  jump(yes);
}

/// Of an array of characters: a text that fills it has no NUL.
void Compiler::matches_array(const Node& node, Label yes, Label no) {
  const std::uint64_t room = node.of[0].of[0].bits;
  if (node.text.size() > room) return jump(no);
  std::string bytes = node.text;
  if (!is_prefix(node) && bytes.size() < room) bytes.push_back('\0');
  compare_bytes(node.of[0], bytes, no);
  jump(yes);
}

/// A word of the scratch room, where it is free.
int Compiler::spill(int number) {
  nested_ |= spilled_ + number >= kMostSpills;
  return kSpills + 8 * std::min(spilled_ + number, kMostSpills - 1);
}

/// Of a piece at word `from` of the frame at most kPiece characters to the frame, and a NUL where the text has none
/// known length. To `ended` where the text has none there. Before Linux 5.12 what is read to must have been written
/// where how much is not a constant.
void Compiler::read_piece(const Node& text, int from, int to, Label ended) {
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
void Compiler::rest_of(const Node& text, int from, std::uint8_t to) {
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
void Compiler::matches_glob(const Node& node, Label yes, Label no) {
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
void Compiler::last_piece(const Node& text, int from, int state, std::size_t table, Label ended) {
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
void Compiler::take_character(int i) {
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

void Compiler::jump_if_has(std::uint8_t reg, std::uint64_t bits, Label to) {
  set(0, bits);
  jump_if(BPF_JSET, reg, 0, to);
}

/// Both are read before they are compared: what cannot be read has no answer. Pieces are filled up with NULs; where
/// one has a length, and perhaps NULs within, how much there is is compared, too.
void Compiler::texts_equal(const Node& node, Label yes, Label no) {
  const int from = spill(0), length = spill(1);
  nested_ |= spilled_ + kRoomForTexts > kMostSpills;
  const std::array<int, 2> buffers{spill(2), kBuffer};  // (whose first byte is free while the first one is read)
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
void Compiler::count_piece(const Node& text, int from, int at) {
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
void Compiler::clear_behind_nul(int at) {
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

void Compiler::compare_bytes(const Node& subject, std::string_view bytes, Label no) {
  for (std::size_t from = 0; from < bytes.size(); from += kPiece) {
    const std::string_view piece = bytes.substr(from, kPiece);
    read_memory(subject, At{.byte = from}, kBuffer, kBytes, [&] { set(2, piece.size()); });
    compare_buffer(piece, piece.size(), no);
  }
}

/// As capture_bytes() of bpf/trace.bpf.c: one below 0 is none.
void Compiler::length_of(const Node& text, std::uint8_t to) {
  leaf(text.of[0], to);
  alu_by(BPF_OR, to,
         0);  // so that what verifiers learn of it is not about the place it came from, on each way its own
  jump_if_is(kJumpSignedLess, to, 0, undecided_);
}

/// At most `size` bytes with the closing NUL of what `pointer` points to, less `from`, to the frame; r0: how many.
void Compiler::read_text(const Node& pointer, std::size_t from, std::size_t size, int to) {
  read_memory(pointer, At{.byte = from}, to, kStrings, [&] { set(2, size); });
  // For an empty text 6.1 says 0 and newer kernels 1.
  const Label counted = label();
  jump_if_is(kJumpNotEqual, 0, 0, counted);
  set(0, 1);
  place(counted);
}

/// Leaves in r3 the address of the text, with r4.
void Compiler::text_address(const Node& pointer, const At& from) {
  leaf({.op = Op::value, .bits = pointer.bits}, 3);
  if (from.byte > 0) alu_by(BPF_ADD, 3, static_cast<std::int32_t>(from.byte));
  if (!from.word) return;
  load(BPF_LDX | BPF_MEM | kDouble, 4, kFrame, *from.word);
  alu(BPF_ADD, 3, 4);
}

/// To `no` where the first `size` bytes of the buffer are not those of `text` and its NUL.
void Compiler::compare_buffer(std::string_view text, std::size_t size, Label no) {
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

}  // namespace usdt::expr
