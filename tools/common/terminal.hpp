// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace usdt::tools {

/// What a stream is connected to.
struct Terminal {
  bool interactive = false;  ///< a terminal rather than a file or pipe
  bool colour = false;       ///< interactive, and neither NO_COLOR nor TERM=dumb is set (no-color.org)
  std::size_t width = 80;    ///< columns

  [[nodiscard]] static Terminal of(int fd);
};

/// Text of unknown origin, safe for a terminal and for line-based tools: control characters and bytes that are not
/// UTF-8 become \n, \t or \xHH.
[[nodiscard]] std::string printable(std::string_view text);

enum class Style { plain, bold, dim, name, mark, bad };
/// `text` in `style`, if `colour`.
[[nodiscard]] std::string styled(std::string_view text, Style style, bool colour);

}  // namespace usdt::tools
