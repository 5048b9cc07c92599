// SPDX-License-Identifier: BSD-2-Clause
// How many columns of a terminal a text takes, and texts that are made to fit. They are printable() (escape.hpp)
// unless said otherwise.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace usdt::io {

/// What of a text is not torn apart: a character with those that combine with it, or an escape that printable() wrote.
struct TextUnit {
  std::size_t bytes = 0;
  std::size_t columns = 0;
};
/// That `text`, which is not empty, begins with.
[[nodiscard]] TextUnit first_unit(std::string_view text) noexcept;

/// Columns that a terminal shows `text` in: by wcwidth(3) two for a wide character, none for a combining one.
[[nodiscard]] std::size_t width_of(std::string_view text) noexcept;

/// The same of any text, as printable() shows it.
[[nodiscard]] std::size_t shown_width(std::string_view text);

/// With spaces behind it, at least `width` columns wide.
[[nodiscard]] std::string padded(std::string text, std::size_t width);

/// At most `width` columns of it: of longer ones the beginning and the end, with "..." where something is left out.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t width);

}  // namespace usdt::io
