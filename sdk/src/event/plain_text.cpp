// SPDX-License-Identifier: BSD-2-Clause
#include "event/plain_text.hpp"

#include <cstddef>

#include "usdt/utf8.hpp"

namespace usdt::event {
namespace {

/// No control character of ASCII and Latin-1 but white space, nothing of private use, and nothing that Unicode never
/// gives a character.
constexpr bool is_printable(char32_t c) {
  if (c < 0x20) return c == '\t' || c == '\n' || c == '\r';
  const bool control = c >= 0x7f && c < 0xa0;
  const bool of_nobody =
      (c >= 0xe000 && c < 0xf900) || (c >= 0xfdd0 && c < 0xfdf0) || (c & 0xfffe) == 0xfffe || c >= 0xe0000;
  return !control && !of_nobody;
}

}  // namespace

bool is_plainly_text(std::string_view bytes, bool cut) noexcept {
  constexpr std::size_t least = 4;
  if (cut) bytes = without_partial_utf8(bytes);
  std::size_t characters = 0;
  while (!bytes.empty()) {
    const std::size_t length = utf8_sequence(bytes);
    if (length == 0 || !is_printable(utf8_code_point(bytes.substr(0, length)))) return false;
    bytes.remove_prefix(length);
    ++characters;
  }
  return characters >= least;
}

}  // namespace usdt::event
