// SPDX-License-Identifier: BSD-2-Clause
// Instructions that compare texts with literals, patterns and each other. What no literal says the end of is looked at
// piece by piece, in a loop. Private to expr/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "expr/glob.hpp"
#include "expr/text_reader.hpp"

namespace usdt::expr {

/// Compares texts, and goes to `yes` or to `no`.
class TextComparer : protected TextReader {
 protected:
  using TextReader::TextReader;

  /// Words of the scratch room that comparisons take: where in the text, and the state; where in the texts, how much
  /// there is of the first, and a piece of the second.
  static constexpr int kRoomForPattern = 2;
  static constexpr int kRoomForTexts = 4;

  /// A text and a literal.
  void matches(const Node& node, Label yes, Label no);
  /// Both are read before they are compared: what cannot be read has no answer. Pieces are filled up with NULs; where
  /// one has a length, and perhaps NULs within, how much there is is compared, too.
  void texts_equal(const Node& node, Label yes, Label no);
  /// The words that instructions read of a map (Code::table).
  [[nodiscard]] const std::vector<std::uint64_t>& table() const noexcept { return table_; }

 private:
  static bool is_prefix(const Node& node) { return static_cast<TextMatch>(node.bits) == TextMatch::prefix; }
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
    if (once) return jump(undecided());
    load(BPF_LDX | BPF_MEM | kDouble, 0, kFrame, from);
    alu_by(BPF_ADD, 0, kPiece);
    store(kFrame, from, 0);
    jump_if_is(kJumpLess, 0, static_cast<std::int32_t>(kLongestLook), again);
    jump(undecided());
  }
  void matches_literal(const Node& node, Label yes, Label no);
  void matches_with_length(const Node& node, Label yes, Label no);
  void matches_array(const Node& node, Label yes, Label no);
  void matches_glob(const Node& node, Label yes, Label no);
  void last_piece(const Node& text, int from, int state, std::size_t table, Label ended);
  void take_character(int i);
  void jump_if_has(std::uint8_t reg, std::uint64_t bits, Label to);
  void count_piece(const Node& text, int from, int at);
  void compare_bytes(const Node& subject, std::string_view bytes, Label no);
  void compare_buffer(std::string_view text, std::size_t size, Label no);

  std::vector<std::uint64_t> table_;
};

}  // namespace usdt::expr
