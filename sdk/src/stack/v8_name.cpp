// SPDX-License-Identifier: BSD-2-Clause
#include "stack/v8_name.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace usdt::stack {
namespace {

/// CodeEventListener::LogEventsAndTags of V8's src/logging/code-events.h: "JS" since V8 11, the others before.
constexpr std::array<std::string_view, 5> kKinds{"JS", "LazyCompile", "Function", "Script", "Eval"};
constexpr std::array<std::string_view, 2> kOtherKinds{"Builtin:", "BytecodeHandler:"};

/// ComputeMarker() of V8's src/logging/log.cc.
CodeTier tier_of(char mark) {
  switch (mark) {
    case '~':
      return CodeTier::interpreted;
    case '^':
      return CodeTier::baseline;
    case '+':  // Maglev
    case '*':  // TurboFan
      return CodeTier::optimized;
    default:
      return CodeTier::unknown;
  }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

/// Takes ":NUMBER" off the end.
std::optional<std::uint32_t> take_number(std::string_view& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos || colon + 1 == text.size()) return std::nullopt;
  std::uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [behind, error] = std::from_chars(text.data() + colon + 1, end, number);
  if (error != std::errc() || behind != end || !is_digit(text[colon + 1])) return std::nullopt;
  text = text.substr(0, colon);
  return number;
}

/// Whether a name of a file can be nothing else than that: "/srv/a.js", "node:fs", "file:///srv/a.mjs"; none at all.
bool is_whole(std::string_view file) {
  if (file.empty() || file.front() == '/') return true;
  const auto scheme = std::ranges::find_if_not(file, is_lower);
  return scheme != file.begin() && scheme != file.end() && *scheme == ':';
}

/// The space between name and file; npos: there may be several.
std::size_t find_border(std::string_view text) {
  std::size_t whole = text.npos, any = text.npos, wholes = 0, all = 0;
  for (std::size_t at = text.find(' '); at != text.npos; at = text.find(' ', at + 1)) {
    any = at, ++all;
    if (is_whole(text.substr(at + 1))) whole = at, ++wholes;
  }
  return wholes == 1 ? whole : wholes == 0 && all == 1 ? any : text.npos;
}

}  // namespace

std::optional<V8Name> parse_v8_name(std::string_view name) {
  const std::size_t colon = name.find(':');
  if (colon == name.npos || std::ranges::find(kKinds, name.substr(0, colon)) == kKinds.end()) return std::nullopt;
  name.remove_prefix(colon + 1);
  V8Name parsed{.tier = name.empty() ? CodeTier::unknown : tier_of(name.front())};
  if (parsed.tier == CodeTier::unknown) return std::nullopt;
  name.remove_prefix(1);
  parsed.function = name;
  const auto last = take_number(name);
  const auto first = last ? take_number(name) : std::nullopt;
  const std::size_t border = last ? find_border(name) : name.npos;
  if (border == name.npos) return parsed;
  parsed.function = name.substr(0, border);
  parsed.file = name.substr(border + 1);
  parsed.line = first ? *first : *last;
  parsed.column = first ? *last : 0;
  return parsed;
}

bool is_v8_name(std::string_view name) {
  return parse_v8_name(name) ||
         std::ranges::any_of(kOtherKinds, [&](std::string_view kind) { return name.starts_with(kind); });
}

}  // namespace usdt::stack
