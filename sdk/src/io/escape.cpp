// SPDX-License-Identifier: BSD-2-Clause
#include "io/escape.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "usdt/utf8.hpp"

namespace usdt::io {
namespace {

constexpr std::uint64_t kEach = 0x0101'0101'0101'0101;

/// True if all eight bytes are from 0x20 to 0x7e ("Bit Twiddling Hacks", hasless and hasmore).
bool is_plain(std::uint64_t word) noexcept {
  const std::uint64_t less = (word - kEach * 0x20) & ~word & kEach * 0x80;
  const std::uint64_t more = ((word + kEach * (0x7f - 0x7e)) | word) & kEach * 0x80;
  return (less | more) == 0;
}

/// How many bytes at the start of `text` are printable ASCII; may stop up to seven bytes early.
std::size_t plain_prefix(std::string_view text) noexcept {
  std::size_t at = 0;
  for (std::uint64_t word = 0; at + sizeof(word) <= text.size(); at += sizeof(word)) {
    std::memcpy(&word, text.data() + at, sizeof(word));
    if (!is_plain(word)) return at;
  }
  while (at < text.size() && text[at] >= 0x20 && text[at] < 0x7f) ++at;
  return at;
}

bool is_harmful(char32_t c) noexcept {
  const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
  const bool separator = c == 0x2028 || c == 0x2029;
  const bool turns = c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e);
  return control || separator || turns || (c >= 0x2066 && c <= 0x2069);
}

/// Calls `harmless` with pieces that may be shown, `harmful` with characters and `broken` with bytes that may not.
template <class Harmless, class Harmful, class Broken>
void walk(std::string_view text, Harmless harmless, Harmful harmful, Broken broken) {
  while (!text.empty()) {
    if (const std::size_t plain = plain_prefix(text); plain > 0) {
      harmless(text.substr(0, plain));
      text.remove_prefix(plain);
      continue;
    }
    const std::size_t length = utf8_sequence(text);
    if (length == 0) {
      broken(static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
      continue;
    }
    const std::string_view sequence = text.substr(0, length);
    const char32_t code = utf8_code_point(sequence);
    is_harmful(code) ? harmful(code) : harmless(sequence);
    text.remove_prefix(length);
  }
}

/// Calls `good` with pieces of UTF-8, and `odd` with each byte that must not be among them.
template <class Good, class Odd>
void walk_utf8(std::string_view text, Good good, Odd odd) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  while (!text.empty()) {
    std::size_t length = plain_prefix(text);
    if (length > 0) {
      good(text.substr(0, length));
    } else {
      length = utf8_sequence(text);
      const std::string_view sequence = text.substr(0, std::max<std::size_t>(length, 1));
      if (length > 0 && text[0] != '\0' && sequence != kReplacement) {
        good(sequence);
      } else {
        for (const char c : sequence) odd(static_cast<unsigned char>(c));
      }
      length = sequence.size();
    }
    text.remove_prefix(length);
  }
}

/// Appends `piece` with two backslashes for each.
void append_doubled(std::string& out, std::string_view piece) {
  for (const char c : piece) {
    if (c == '\\') out += c;
    out += c;
  }
}

void append_escape(std::string& out, char32_t code) {
  if (code == '\n')
    out += "\\n";
  else if (code == '\t')
    out += "\\t";
  else if (code < 0x80)
    fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<std::uint32_t>(code));
  else
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<std::uint32_t>(code));
}

}  // namespace

bool is_printable(std::string_view text) noexcept {
  bool all = true;
  walk(
      text, [](std::string_view) {}, [&](char32_t) { all = false; }, [&](unsigned char) { all = false; });
  return all;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  walk(
      text, [&](std::string_view piece) { out += piece; }, [&](char32_t code) { append_escape(out, code); },
      [&](unsigned char byte) { fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte); });
  return out;
}

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  walk(
      text, [&](std::string_view piece) { append_doubled(out, piece); },
      [&](char32_t code) { append_escape(out, code); },
      [&](unsigned char byte) { fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte); });
  return out;
}

bool is_valid_utf8(std::string_view text) noexcept {
  bool all = true;
  walk_utf8(
      text, [](std::string_view) {}, [&](unsigned char) { all = false; });
  return all;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  walk_utf8(
      text, [&](std::string_view piece) { out += piece; },
      [&](unsigned char byte) { fmt::format_to(std::back_inserter(out), "\xef\xbf\xbd{:02x}", byte); });
  return out;
}

bool needs_escapes(std::string_view text, Escapes escapes) noexcept {
  if (escapes == Escapes::only_what_is_odd) return !is_valid_utf8(text);
  return !is_printable(text) || (escapes == Escapes::all && text.find('\\') != text.npos);
}

std::string with_escapes(std::string_view text, Escapes escapes) {
  switch (escapes) {
    case Escapes::controls:
      return printable(text);
    case Escapes::all:
      return escaped(text);
    case Escapes::only_what_is_odd:
      break;
  }
  return valid_utf8(text);
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = text.find_first_of("\"\\", at);
    out += printable(text.substr(at, next - at));
    if (next == text.npos) break;
    out += '\\';
    out += text[next];
    at = next + 1;
  }
  return out + '"';
}

void append_json(fmt::memory_buffer& out, std::string_view json) {
  const auto append = [&](std::string_view piece) { out.append(piece.data(), piece.data() + piece.size()); };
  walk(
      json, append,
      [&](char32_t code) { fmt::format_to(fmt::appender(out), "\\u{:04x}", static_cast<std::uint32_t>(code)); },
      [&](unsigned char) { append("\xef\xbf\xbd"); });
}

}  // namespace usdt::io
