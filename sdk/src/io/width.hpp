// SPDX-License-Identifier: BSD-2-Clause
// Columns of a terminal that a text takes, and texts that are made to fit. They are printable() (escape.hpp) unless
// said otherwise.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace usdt::io {

/// A part of a text that stays in one piece: a character with those that combine with it, or an escape that printable()
/// wrote.
struct TextUnit {
  std::size_t bytes = 0;
  std::size_t columns = 0;
};
/// Returns the unit that `text`, which is not empty, begins with.
[[nodiscard]] TextUnit first_unit(std::string_view text) noexcept;

/// Returns the columns that a terminal shows `text` in: by wcwidth(3) two for a wide character, none for a combining
/// one.
[[nodiscard]] std::size_t width_of(std::string_view text) noexcept;

/// Returns the columns of any text, as printable() shows it.
[[nodiscard]] std::size_t shown_width(std::string_view text);

/// Appends spaces until `text` is at least `width` columns wide.
[[nodiscard]] std::string padded(std::string text, std::size_t width);

/// Shortens a text to at most `width` columns: its beginning and end stay, with "..." between them.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t width);

}  // namespace usdt::io
