// SPDX-License-Identifier: BSD-2-Clause
#include "common/script_guard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>

#include "common/script.hpp"

namespace usdt::tools {
namespace {

/// The parser calls itself for each part of a dotted key, and 100,000 of them would be the end of its stack: it bounds
/// how deep values are nested, and keys from version 3.4 on. A key is within one line. The first that is too long.
std::optional<ScriptPlace> too_deep_key(std::string_view text) {
  constexpr std::ptrdiff_t most = 256;  // of 128 arrays of inline tables, each on a line of its own: 4 MiB of stack
  std::uint32_t line = 1;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const std::string_view rest = text.substr(at);
    const std::string_view here = rest.substr(0, rest.find('\n'));
    if (std::ranges::count(here, '.') > most) return ScriptPlace{line, 1};
    at += here.size() + 1;
  }
  return std::nullopt;
}

/// Where `text` has a character that TOML knows in texts and comments alone, as it knows all that are not ASCII;
/// nothing: nowhere. For some of them the parser of toml++ 3.3 does what no compiler has to make sense of.
std::optional<ScriptPlace> stray_character(std::string_view text) {
  ScriptPlace place{1, 1};
  std::string_view quote;  // that ends the text which is open; "\n": of a comment
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    std::size_t bytes = 1;
    if (!quote.empty()) {
      if (quote.front() == '"' && rest.front() == '\\') bytes = std::min<std::size_t>(2, rest.size());
      // A line ends whatever has one quote, too: the parser says so.
      if (rest.starts_with(quote) || (quote.size() == 1 && rest.front() == '\n')) {
        bytes = quote.size();
        quote = {};
      }
    } else if (rest.front() == '#') {
      quote = "\n";
    } else if (rest.front() == '"' || rest.front() == '\'') {
      const bool is_long = rest.size() > 2 && rest[1] == rest[0] && rest[2] == rest[0];
      quote = rest.substr(0, bytes = is_long ? 3 : 1);
    } else if (static_cast<unsigned char>(rest.front()) >= 0x80) {
      return place;
    }
    for (const char c : rest.substr(0, bytes)) {
      if (c == '\n') place = {place.line + 1, 0};
      // As the parser counts: characters, of which each has one byte that does not go on with another.
      if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) ++place.column;
    }
    at += bytes;
  }
  return std::nullopt;
}

}  // namespace

Result<void> guard_parser(const std::string& file, std::string_view text) {
  const auto refuse = [&](ErrorKind kind, const ScriptPlace& place, std::string_view why) {
    return fail(kind, fmt::format("{}:{}:{}: {}", file, place.line, place.column, why));
  };
  if (const auto place = too_deep_key(text)) return refuse(ErrorKind::limit, *place, "more than 256 dots in one line");
  if (const auto place = stray_character(text))
    return refuse(ErrorKind::syntax, *place, "a character that is not ASCII, outside of quotes and comments");
  return {};
}

}  // namespace usdt::tools
