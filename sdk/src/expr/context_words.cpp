// SPDX-License-Identifier: BSD-2-Clause
#include "expr/context_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace usdt::expr {

std::optional<std::string> context_bytes(HitField field, std::string_view digits) {
  std::string bytes;
  if (!digits.empty() && digits.size() != digits_of(field)) return std::nullopt;
  for (; !digits.empty(); digits.remove_prefix(2)) {
    unsigned char byte = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + 2, byte, 16);
    if (error != std::errc() || end != digits.data() + 2) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
  }
  bytes.resize(kContextBytes);
  return bytes;
}

std::string context_digits(HitField field, std::string_view bytes) {
  bytes = bytes.substr(0, digits_of(field) / 2);
  std::string digits;
  if (std::ranges::all_of(bytes, [](char each) { return each == 0; })) return digits;
  for (const char each : bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(each));
  return digits;
}

}  // namespace usdt::expr
