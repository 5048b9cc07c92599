// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <string_view>

namespace usdt::io {

/// The kind and size of a stream's other end.
struct Terminal {
  bool interactive = false;  ///< a terminal rather than a file or pipe
  bool colour = false;       ///< interactive, and neither NO_COLOR nor TERM=dumb is set (no-color.org)
  std::size_t width = 80;    ///< columns
  std::size_t height = 24;   ///< lines

  [[nodiscard]] static Terminal of(int fd);
  /// Asks how large it is now: somebody may have resized it.
  void measure(int fd);
};

/// Whether the user's terminal shows UTF-8, by LC_ALL, LC_CTYPE or LANG (locale(7)).
[[nodiscard]] bool is_utf8_locale();

/// Takes from `text` what fits `width` columns, up to a space; a word that is longer has a line of its own.
[[nodiscard]] std::string_view next_line(std::string_view& text, std::size_t width) noexcept;

/// `heat1` to `heat5`: colder and hotter, of 256 colours.
enum class Style { plain, bold, dim, name, mark, bad, heat1, heat2, heat3, heat4, heat5 };
/// Returns the text between ESC [ and m for a style; empty for plain.
[[nodiscard]] std::string_view code_of(Style style);

}  // namespace usdt::io
