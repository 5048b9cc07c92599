// SPDX-License-Identifier: BSD-2-Clause
#include "parsers/literal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "usdt/utf8.hpp"

namespace usdt::parsers {
namespace {

/// Escapes of one character, and the characters that they stand for.
constexpr std::string_view kShort = "abfnrtv\\\"'?", kMeant = "\a\b\f\n\r\t\v\\\"'?";

/// The text and the length of the escape that `text` begins with; empty: C has no such escape.
struct Escape {
  std::string meant;
  std::size_t length = 0;
};

/// The character of that number in UTF-8; empty: there is none.
std::string utf8_of(std::uint32_t code) {
  const auto byte = [](std::uint32_t bits) { return static_cast<char>(bits); };
  const auto rest = [&](unsigned shift) { return byte(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xc0 | code >> 6), rest(0)};
  if (code >= 0xd800 && code < 0xe000) return {};
  if (code < 0x10000) return {byte(0xe0 | code >> 12), rest(6), rest(0)};
  if (code < 0x110000) return {byte(0xf0 | code >> 18), rest(12), rest(6), rest(0)};
  return {};
}

/// Reads `least` to `most` digits of `base` behind the first `from` characters.
Escape numbered(std::string_view text, std::size_t from, std::size_t least, std::size_t most, int base) {
  const std::string_view digits = text.substr(std::min(from, text.size()), most);
  std::uint32_t number = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  const auto length = static_cast<std::size_t>(read.ptr - digits.data());
  if (read.ec != std::errc() || length < least) return {};
  const bool is_character = most > 3;
  if (!is_character) return number > 0xff ? Escape{} : Escape{std::string(1, static_cast<char>(number)), from + length};
  std::string meant = utf8_of(number);
  return meant.empty() ? Escape{} : Escape{std::move(meant), from + length};
}

Escape read_escape(std::string_view text) {
  const char c = text.size() > 1 ? text[1] : '\0';
  if (c >= '0' && c <= '7') return numbered(text, 1, 1, 3, 8);
  if (c == 'x') return numbered(text, 2, 2, 2, 16);
  if (c == 'u') return numbered(text, 2, 4, 4, 16);
  if (c == 'U') return numbered(text, 2, 8, 8, 16);
  const std::size_t which = text.size() > 1 ? kShort.find(c) : kShort.npos;
  return which == kShort.npos ? Escape{} : Escape{std::string(1, kMeant[which]), 2};
}

}  // namespace

Result<std::string> text_of_literal(std::string_view inner) {
  std::string out;
  for (std::size_t at = 0; at < inner.size();) {
    if (inner[at] != '\\') {
      out += inner[at++];
      continue;
    }
    const Escape escape = read_escape(inner.substr(at));
    if (escape.length == 0)
      return fail(
          Error{ErrorKind::syntax,
                fmt::format("'{}' is no escape that C has; a backslash is written twice: \\\\",
                            inner.substr(at, std::max<std::size_t>(2, 1 + utf8_sequence(inner.substr(at + 1))))),
                0, static_cast<std::uint32_t>(at)});
    out += escape.meant;
    at += escape.length;
  }
  return out;
}

}  // namespace usdt::parsers
