// SPDX-License-Identifier: BSD-2-Clause
// Quotes and backslashes in the parts of a pattern: reading them, and writing names so that they read as themselves.
#include "parsers/quote.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <iterator>

#include "usdt/utf8.hpp"

namespace usdt {
inline namespace v1 {
namespace {

/// Controls of terminals (C0, C1) and of writing direction, which would show another name than there is, and line ends.
bool is_control(char32_t code) noexcept {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || (code >= 0x200b && code <= 0x200f) ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) || code == 0xfeff;
}

/// A character as utf8_sequence() found it; empty: what begins there is none.
bool is_shown(std::string_view character) noexcept {
  return !character.empty() && !is_control(utf8_code_point(character));
}

/// Appends what stands at the start of `text`, and a '\' before it if it is one of `special`. Returns its length.
std::size_t append_escaped(std::string& out, std::string_view text, std::string_view special) {
  const std::size_t length = utf8_sequence(text);
  if (text[0] == '\n' || text[0] == '\t') {
    out += text[0] == '\n' ? "\\n" : "\\t";
    return 1;
  }
  if (!is_shown(text.substr(0, length))) {
    const std::string_view bytes = text.substr(0, std::max<std::size_t>(length, 1));
    for (const char byte : bytes)
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(byte));
    return bytes.size();
  }
  if (special.find(text[0]) != special.npos) out += '\\';
  out += text.substr(0, length);
  return length;
}

/// How many characters at the start are printable ASCII, none of them `special`: most names are nothing else.
std::size_t plain_length(std::string_view text, std::string_view special) noexcept {
  std::size_t length = 0;
  while (length < text.size() && text[length] >= 0x20 && text[length] < 0x7f &&
         special.find(text[length]) == special.npos)
    ++length;
  return length;
}

std::string escaped(std::string_view text, std::string_view special) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t plain = plain_length(text, special);
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (!text.empty()) text.remove_prefix(append_escaped(out, text, special));
  }
  return out;
}

/// The character that a '\' and the characters behind it stand for.
struct Escape {
  char value = '\\';
  std::size_t length = 1;
};

Escape read_escape(std::string_view text) noexcept {
  if (text.size() < 2) return {};
  const char c = text[1];
  if (c == 'n') return {'\n', 2};
  if (c == 't') return {'\t', 2};
  if (c == 'r') return {'\r', 2};
  if (c == '0') return {'\0', 2};
  std::uint8_t number = 0;
  if (c == 'x' && text.size() >= 4) {
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + 4, number, 16);
    if (error == std::errc() && end == text.data() + 4) return {static_cast<char>(number), 4};
  }
  return {c, 2};
}

/// Plain in a pattern and to a shell alike. '!' and '{' are not to all shells.
constexpr auto kPlain = [] {
  std::array<bool, 256> plain{};
  for (const char c : std::string_view("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-@%=,:^"))
    plain[static_cast<unsigned char>(c)] = true;
  return plain;
}();

bool is_plain(char c) noexcept { return kPlain[static_cast<unsigned char>(c)]; }

bool needs_quotes(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = is_plain(text[0]) ? 1 : utf8_sequence(text);
    if (length == 1 ? !is_plain(text[0]) : !is_shown(text.substr(0, length))) return true;
    text.remove_prefix(length);
  }
  return false;
}

/// Characters with a meaning in a glob, in a pattern, or inside a class.
constexpr std::string_view kGlobSpecial = "*?[]!^-\\:\"";

}  // namespace

std::size_t quoted_length(std::string_view text) noexcept {
  if (!text.starts_with('"')) return 0;
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (text[at] == '\\')
      ++at;
    else if (text[at] == '"')
      return at + 1;
  }
  return 0;
}

std::optional<std::string> unquoted(std::string_view text) {
  if (quoted_length(text) != text.size() || text.empty()) return std::nullopt;
  return without_backslashes(text.substr(1, text.size() - 2));
}

std::string without_backslashes(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Escape next = text[0] == '\\' ? read_escape(text) : Escape{text[0], 1};
    out += next.value;
    text.remove_prefix(next.length);
  }
  return out;
}

std::string quote_target(std::string_view path) {
  // In double quotes a shell takes away the same backslashes.
  return needs_quotes(path) ? fmt::format("\"{}\"", escaped(path, "\\\"$`")) : std::string(path);
}

std::string quote_name(std::string_view name) {
  return fmt::format("{}{}", name.starts_with('"') ? "\\" : "", escaped(name, "*?[\\:"));
}

std::string quote_function(std::string_view name) {
  bool plain = !name.empty() && name[0] != '@';
  for (std::size_t at = 0; plain && at < name.size();) {
    const std::size_t length = utf8_sequence(name.substr(at));
    const std::string_view character = name.substr(at, length);
    plain = is_shown(character) && (length > 1 || std::string_view("*?[\\\"+:").find(name[at]) == name.npos);
    if (!plain && name.substr(at).starts_with("::") && !name.substr(at).starts_with(":::")) {
      plain = true;
      at += 2;
    } else {
      at += std::max<std::size_t>(length, 1);
    }
  }
  return plain ? std::string(name) : fmt::format("\"{}\"", escaped(name, "\\\"$`"));
}

std::string glob_of_part(std::string_view part) {
  std::string out;
  const auto literally = [&](char c) {
    if (kGlobSpecial.find(c) != kGlobSpecial.npos) out += '\\';
    out += c;
  };
  if (const auto text = unquoted(part)) {
    for (const char c : *text) literally(c);
    return out;
  }
  while (!part.empty()) {
    const Escape next = part[0] == '\\' ? read_escape(part) : Escape{part[0], 1};
    // An escaped character is itself, in one spelling. So is a bare quote: written back behind another part it must not
    // become the end of a quoted one.
    if (part[0] == '\\' || part[0] == '"')
      literally(next.value);
    else
      out += part[0];
    part.remove_prefix(next.length);
  }
  return out;
}

}  // namespace v1
}  // namespace usdt
