// SPDX-License-Identifier: BSD-2-Clause
#include "io/width.hpp"

#include <locale.h>
#include <wchar.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "io/escape.hpp"
#include "usdt/utf8.hpp"

namespace usdt::io {
namespace {

constexpr std::string_view kLeftOut = "...";

/// Opens a locale with the characters of all languages: the tools run in the locale "C", where wcwidth(3) knows ASCII
/// alone.
locale_t unicode_locale() noexcept {
  const locale_t unicode = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return unicode != nullptr ? unicode : ::newlocale(LC_CTYPE_MASK, "", nullptr);
}

/// Returns the columns of a character; 1 for one that the locale does not know, as terminals show it.
std::size_t columns_of(char32_t code) noexcept {
  constexpr char32_t kFirstCombining = 0x300;
  static const locale_t unicode = unicode_locale();
  if (code < kFirstCombining || unicode == nullptr) return 1;
  const locale_t before = ::uselocale(unicode);
  const int columns = ::wcwidth(static_cast<wchar_t>(code));
  ::uselocale(before);
  return columns < 0 ? 1 : static_cast<std::size_t>(columns);
}

/// Returns how many bytes of ASCII `text` begins with.
std::size_t ascii_prefix(std::string_view text) noexcept {
  std::size_t at = 0;
  for (std::uint64_t word = 0; at + sizeof(word) <= text.size(); at += sizeof(word)) {
    std::memcpy(&word, text.data() + at, sizeof(word));
    if ((word & 0x8080'8080'8080'8080) != 0) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

/// Bytes of the escape that `text` begins with, as append_escape() of escape.cpp writes them; 0: with none.
std::size_t escape_length(std::string_view text) noexcept {
  if (text.size() < 2 || text[0] != '\\') return 0;
  const std::size_t length = text[1] == 'x' ? 4 : text[1] == 'u' ? 6 : 2;
  return std::min(length, text.size());
}

TextUnit first_character(std::string_view text) noexcept {
  const std::size_t bytes = utf8_sequence(text);
  if (bytes == 0) return {1, 1};
  return {bytes, columns_of(utf8_code_point(text.substr(0, bytes)))};
}

}  // namespace

TextUnit first_unit(std::string_view text) noexcept {
  const std::size_t escape = escape_length(text);
  TextUnit unit = escape > 0 ? TextUnit{escape, escape} : first_character(text);
  while (unit.bytes < text.size() && static_cast<unsigned char>(text[unit.bytes]) >= 0x80) {
    const TextUnit next = first_character(text.substr(unit.bytes));
    if (next.columns > 0) break;
    unit.bytes += next.bytes;
  }
  return unit;
}

std::size_t width_of(std::string_view text) noexcept {
  std::size_t columns = 0;
  while (!text.empty()) {
    const std::size_t plain = ascii_prefix(text);
    columns += plain;
    text.remove_prefix(plain);
    if (text.empty()) break;
    const TextUnit character = first_character(text);
    columns += character.columns;
    text.remove_prefix(character.bytes);
  }
  return columns;
}

std::size_t shown_width(std::string_view text) { return width_of(printable(text)); }

std::string padded(std::string text, std::size_t width) {
  const std::size_t columns = width_of(text);
  if (columns < width) text.append(width - columns, ' ');
  return text;
}

std::string shortened(std::string_view text, std::size_t width) {
  if (width_of(text) <= width) return std::string(text);
  if (width <= kLeftOut.size()) return std::string(kLeftOut.substr(0, width));
  std::vector<TextUnit> units;
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(units.back().bytes))
    units.push_back(first_unit(rest));
  std::size_t room = width - kLeftOut.size();
  std::size_t begin = 0;  // bytes that are kept
  std::size_t end = 0;
  for (std::size_t half = room / 2, i = units.size(); i-- > 0 && units[i].columns <= half;) {
    half -= units[i].columns;
    room -= units[i].columns;
    end += units[i].bytes;
  }
  for (std::size_t i = 0; units[i].columns <= room; ++i) {
    room -= units[i].columns;
    begin += units[i].bytes;
  }
  return std::string(text.substr(0, begin)).append(kLeftOut).append(text.substr(text.size() - end));
}

}  // namespace usdt::io
