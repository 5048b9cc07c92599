// SPDX-License-Identifier: BSD-2-Clause
#include "expr/text_comparer.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "expr/context_words.hpp"

namespace usdt::expr {

void TextComparer::matches(const Node& node, Label yes, Label no) {
  if (static_cast<TextMatch>(node.bits) == TextMatch::glob) return matches_glob(node, yes, no);
  matches_literal(node, yes, no);
}

void TextComparer::matches_literal(const Node& node, Label yes, Label no) {
  const bool prefix = is_prefix(node);
  if (node.of[0].op == Op::field) {
    const auto field = static_cast<HitField>(node.of[0].bits);
    if (is_context_word(field)) {
      text_field_to(field, kBuffer);
      compare_buffer(node.text, kPiece, no);
      return jump(yes);
    }
    if (node.text.size() > 15) return jump(no);
    text_field_to(field, kBuffer);
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
  // The NUL is read with it; and of a longer text one character more, so that its length tells.
  read_text(node.of[0], from, rest.size() + (prefix ? 1 : 2));
  jump_if_is(kJumpNotEqual, 0, static_cast<std::int32_t>(rest.size() + 1), no);
  compare_buffer(rest, rest.size(), no);
  jump(yes);
}

/// The length of a text comes first where it is known, and nothing behind it is read.
void TextComparer::matches_with_length(const Node& node, Label yes, Label no) {
  length_of(node.of[0], 0);
  jump_if_is(is_prefix(node) ? kJumpLess : kJumpNotEqual, 0, static_cast<std::int32_t>(node.text.size()), no);
  compare_bytes(node.of[0], node.text, no);
  jump(yes);
}

/// A text that fills an array of characters has no NUL.
void TextComparer::matches_array(const Node& node, Label yes, Label no) {
  const std::uint64_t room = node.of[0].of[0].bits;
  if (node.text.size() > room) return jump(no);
  std::string bytes = node.text;
  if (!is_prefix(node) && bytes.size() < room) bytes.push_back('\0');
  compare_bytes(node.of[0], bytes, no);
  jump(yes);
}

/// The literal that the pattern begins with comes first: it rejects most. Then the automaton of Glob. Verifiers keep
/// 8,192 branches in mind at once: characters have none, but those of the last piece of a text with a length.
void TextComparer::matches_glob(const Node& node, Label yes, Label no) {
  const Glob glob = *Glob::parse(node.text);
  const Node& text = node.of[0];
  const bool at_nul = ends_at_nul(text);
  const int from = scratch_.free(0), state = scratch_.free(1);
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

/// The rest of a text with a length, less than a piece.
void TextComparer::last_piece(const Node& text, int from, int state, std::size_t table, Label ended) {
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
void TextComparer::take_character(int i) {
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

void TextComparer::jump_if_has(std::uint8_t reg, std::uint64_t bits, Label to) {
  set(0, bits);
  jump_if(BPF_JSET, reg, 0, to);
}

void TextComparer::texts_equal(const Node& node, Label yes, Label no) {
  const int from = scratch_.free(0), length = scratch_.free(1);
  scratch_.need(kRoomForTexts);
  const std::array<int, 2> buffers{scratch_.free(2),
                                   kBuffer};  // (whose first byte is free while the first one is read)
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
void TextComparer::count_piece(const Node& text, int from, int at) {
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

void TextComparer::compare_bytes(const Node& subject, std::string_view bytes, Label no) {
  for (std::size_t from = 0; from < bytes.size(); from += kPiece) {
    const std::string_view piece = bytes.substr(from, kPiece);
    read_memory(subject, At{.byte = from}, kBuffer, kBytes, [&] { set(2, piece.size()); });
    compare_buffer(piece, piece.size(), no);
  }
}

/// To `no` where the first `size` bytes of the buffer are not those of `text` and its NUL.
void TextComparer::compare_buffer(std::string_view text, std::size_t size, Label no) {
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
