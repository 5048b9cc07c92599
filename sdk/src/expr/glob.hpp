// SPDX-License-Identifier: BSD-2-Clause
// Globs on texts of hits, as an automaton that instructions of programs and evaluate() go through alike. Private to
// expr/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "usdt/expression.hpp"

namespace usdt::expr {

/// So far texts are looked at where no length of a literal says how far: those that are longer and not decided by then
/// have no answer.
constexpr std::size_t kLongestLook = 512;

/// `*`, `?`, `[a-z]`, `[!a-z]` and a backslash before what shall be plain, as glob_match() has them. A state is a set
/// of bits, one for each number of elements (`*` aside, which takes any number of characters, each takes one) that have
/// matched: kMatched for all of them, the next lower bit for all but one.
class Glob {
 public:
  /// At most so many elements.
  static constexpr std::size_t kMost = 62;

  /// Nothing: more than kMost elements.
  [[nodiscard]] static std::optional<Glob> parse(std::string_view text);

  /// A text that is matched if it ends there.
  static constexpr std::uint64_t kMatched = std::uint64_t{1} << 62;
  /// A text that ended, at a NUL, and was matched.
  static constexpr std::uint64_t kEnded = kMatched << 1;
  /// A text before its first character.
  [[nodiscard]] std::uint64_t start() const noexcept { return kMatched >> elements_; }
  /// Moves a state on by one character: (state & takes) << 1 | (state & stays).
  struct Step {
    std::uint64_t takes = 0;
    std::uint64_t stays = 0;
  };
  /// By character. `ends_at_nul`: a NUL ends the text, and whatever is behind it does not matter.
  [[nodiscard]] std::array<Step, 256> steps(bool ends_at_nul) const;
  /// Whether a text that is matched may go on as it likes.
  [[nodiscard]] bool open_ended() const noexcept { return (stays_ & kMatched) != 0; }

  /// Nothing: it is longer than kLongestLook - 1, or goes on (`cut`), and what there is to look at does not decide.
  [[nodiscard]] std::optional<bool> matches(std::string_view text, bool cut) const;

  /// The text it begins with, and whether that is all there is, or all but a '*' at the end.
  struct Beginning {
    std::string text;  ///< without the backslashes that make what is behind them plain
    TextMatch match = TextMatch::glob;
  };
  [[nodiscard]] static Beginning beginning(std::string_view text);

 private:
  std::array<std::uint64_t, 256> takes_{};  ///< by character the elements that take it
  std::size_t elements_ = 0;
  std::uint64_t stays_ = 0;  ///< those behind which a '*' stands, and that any character leaves
};

}  // namespace usdt::expr
