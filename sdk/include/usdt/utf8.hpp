// SPDX-License-Identifier: BSD-2-Clause
// UTF-8 (RFC 3629) in bytes that other programs wrote, which may be any bytes: utf8_sequence() finds well-formed
// characters, utf8_code_point() decodes one, without_partial_utf8() repairs the end of a text that was cut.
// Threads: pure functions; nothing is allocated, and views refer to what was passed in.
#pragma once

#include <cstddef>
#include <string_view>

namespace usdt {
inline namespace v1 {

/// Returns how many bytes the character has that begins with `first`, 1 to 4; 0: no character begins so.
[[nodiscard]] constexpr std::size_t utf8_announced(char first) noexcept {
  const auto byte = static_cast<unsigned char>(first);
  if (byte < 0x80) return 1;
  if (byte >= 0xc2 && byte <= 0xdf) return 2;
  if (byte >= 0xe0 && byte <= 0xef) return 3;
  return byte >= 0xf0 && byte <= 0xf4 ? 4 : 0;
}

/// Returns the length in bytes of the well-formed sequence at the start of `bytes`, which must not be empty.
/// Well-formed is a sequence that is not overlong, no surrogate, and at most U+10FFFF. 0: there is none.
[[nodiscard]] constexpr std::size_t utf8_sequence(std::string_view bytes) noexcept {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const std::size_t length = utf8_announced(bytes[0]);
  if (length == 0 || length > bytes.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((at(i) & 0xc0) != 0x80) return 0;
  if (length < 3) return length;
  const bool overlong = (at(0) == 0xe0 && at(1) < 0xa0) || (at(0) == 0xf0 && at(1) < 0x90);
  const bool surrogate = at(0) == 0xed && at(1) >= 0xa0;
  const bool too_large = at(0) == 0xf4 && at(1) >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

/// Returns the character that a well-formed `sequence` of 1 to 4 bytes encodes.
[[nodiscard]] constexpr char32_t utf8_code_point(std::string_view sequence) noexcept {
  const auto first = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return first;
  char32_t code = first & (0xffU >> (sequence.size() + 1));
  for (const char c : sequence.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3f);
  return code;
}

/// Returns `bytes` without the beginning of a sequence that a cut left at the end.
[[nodiscard]] constexpr std::string_view without_partial_utf8(std::string_view bytes) noexcept {
  for (std::size_t back = 1; back <= 3 && back <= bytes.size(); ++back) {
    const char c = bytes[bytes.size() - back];
    if ((static_cast<unsigned char>(c) & 0xc0) == 0x80) continue;
    return utf8_announced(c) > back ? bytes.substr(0, bytes.size() - back) : bytes;
  }
  return bytes;
}

}  // namespace v1
}  // namespace usdt
