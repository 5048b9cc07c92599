// SPDX-License-Identifier: BSD-2-Clause
#include "export/directive_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

namespace usdt::exports {
namespace {

/// Returns the characters before the digits of an integer: its sign, or the prefix of its base.
std::string prefix_of(const FormatPiece& piece, bool decimal, bool negative, bool is_zero) {
  if (decimal && negative) return "-";
  const bool is_signed = piece.conversion == 'd' || piece.conversion == 'i';
  if (is_signed && piece.plus) return "+";
  if (is_signed && piece.blank) return " ";
  if (piece.conversion == 'p' || (piece.prefix && piece.conversion == 'x' && !is_zero)) return "0x";
  return piece.prefix && piece.conversion == 'X' && !is_zero ? "0X" : "";
}

std::string digits_of(const FormatPiece& piece, std::uint64_t bits) {
  if (piece.precision == std::size_t{0} && bits == 0) return piece.conversion == 'o' && piece.prefix ? "0" : "";
  switch (piece.conversion) {
    case 'o':
      return fmt::format("{}{:o}", piece.prefix && bits != 0 ? "0" : "", bits);
    case 'X':
      return fmt::format("{:X}", bits);
    case 'x':
    case 'p':
      return fmt::format("{:x}", bits);
    default:
      return fmt::format("{}", bits);
  }
}

}  // namespace

std::string integer_text(const FormatPiece& piece, const Value& value, std::size_t size) {
  const auto* whole = std::get_if<std::int64_t>(&value);
  const bool negative = whole != nullptr && *whole < 0;
  std::uint64_t bits = whole != nullptr ? static_cast<std::uint64_t>(*whole) : std::get<std::uint64_t>(value);
  const bool decimal = std::string_view("oxXpc").find(piece.conversion) == std::string_view::npos;
  if (piece.conversion == 'c') return std::string(1, static_cast<char>(bits));
  if (decimal && negative) bits = 0 - bits;
  if (!decimal && size < 8) bits &= (std::uint64_t{1} << (8 * size)) - 1;
  const std::string digits = digits_of(piece, bits);
  const std::string prefix = prefix_of(piece, decimal, negative, bits == 0);
  const bool fills = piece.zeros && !piece.left && !piece.precision;
  const std::size_t least = fills ? piece.width - std::min(piece.width, prefix.size()) : piece.precision.value_or(0);
  return prefix + std::string(least - std::min(least, digits.size()), '0') + digits;
}

std::string real_text(const FormatPiece& piece, double value) {
  std::string format = "%";
  for (const auto& [flag, wanted] :
       {std::pair('0', piece.zeros && !piece.left), {'+', piece.plus}, {' ', piece.blank}, {'#', piece.prefix}})
    if (wanted) format += flag;
  format += "*.*";
  format += piece.conversion;
  const auto width = static_cast<int>(piece.zeros && !piece.left ? piece.width : 0);
  const auto precision = static_cast<int>(piece.precision.value_or(6));
  // NOLINTBEGIN(cppcoreguidelines-pro-type-vararg,clang-diagnostic-format-nonliteral): C says what it looks like
  const int length = std::snprintf(nullptr, 0, format.c_str(), width, precision, value);
  std::string text(static_cast<std::size_t>(std::max(length, 0)) + 1, '\0');
  std::snprintf(text.data(), text.size(), format.c_str(), width, precision, value);
  // NOLINTEND(cppcoreguidelines-pro-type-vararg,clang-diagnostic-format-nonliteral)
  text.pop_back();
  return text;
}

}  // namespace usdt::exports
