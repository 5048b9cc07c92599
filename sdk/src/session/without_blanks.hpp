// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <algorithm>
#include <string_view>

namespace usdt::session {

/// Returns what is between the blanks around `text`.
[[nodiscard]] inline std::string_view without_blanks(std::string_view text) noexcept {
  const std::size_t first = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

}  // namespace usdt::session
