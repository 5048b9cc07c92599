// SPDX-License-Identifier: BSD-2-Clause
#include "event/plain_text.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace usdt::event {
namespace {

/// Bytes of a character that begins so; 0: none does.
constexpr std::size_t announced(std::uint8_t first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return 2;
  if (first >= 0xe0 && first <= 0xef) return 3;
  return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

/// Control characters of ASCII and Latin-1, surrogates, private use, and what Unicode never gives a character.
constexpr bool is_printable(std::uint32_t c) {
  if (c < 0x20) return c == '\t' || c == '\n' || c == '\r';
  const bool control = c >= 0x7f && c < 0xa0;
  const bool of_nobody =
      (c >= 0xd800 && c < 0xf900) || (c >= 0xfdd0 && c < 0xfdf0) || (c & 0xfffe) == 0xfffe || c >= 0xe0000;
  return !control && !of_nobody;
}

/// The character at the front of `bytes`, which has all of it; 0: not UTF-8.
std::uint32_t decode(std::string_view bytes, std::size_t length) {
  if (length == 1) return static_cast<std::uint8_t>(bytes[0]);
  std::uint32_t c = static_cast<std::uint8_t>(bytes[0]) & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<std::uint8_t>(bytes[i]);
    if ((byte & 0xc0) != 0x80) return 0;
    c = c << 6 | (byte & 0x3f);
  }
  constexpr std::array<std::uint32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};
  return c < smallest[length] ? 0 : c;
}

}  // namespace

bool is_plainly_text(std::string_view bytes, bool cut) noexcept {
  constexpr std::size_t least = 4;
  std::size_t characters = 0;
  while (!bytes.empty()) {
    const std::size_t length = announced(static_cast<std::uint8_t>(bytes[0]));
    if (length > bytes.size() && cut) break;
    if (length == 0 || length > bytes.size() || !is_printable(decode(bytes, length))) return false;
    bytes.remove_prefix(length);
    ++characters;
  }
  return characters >= least;
}

}  // namespace usdt::event
