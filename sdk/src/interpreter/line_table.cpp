// SPDX-License-Identifier: BSD-2-Clause
#include "interpreter/line_table.hpp"

namespace usdt::interpreter {
namespace {

constexpr unsigned kUnit = 2;       // bytes of a code unit
constexpr unsigned kBegins = 0x80;  // the first byte of an entry
enum Kind : unsigned { kOneLine0 = 10, kOneLine1 = 11, kOneLine2 = 12, kNoColumns = 13, kLong = 14, kNone = 15 };

unsigned byte_at(std::span<const std::byte> table, std::size_t at) {
  return at < table.size() ? std::to_integer<unsigned>(table[at]) : kBegins;  // the end, as another entry
}

/// Groups of 6 bits, the lowest first; bit 6 says that there is another one.
std::uint32_t number_at(std::span<const std::byte> table, std::size_t at) {
  constexpr unsigned bits = 6, more = 0x40;
  std::uint32_t number = 0;
  for (unsigned shift = 0; shift < 32; shift += bits, ++at) {
    const unsigned byte = byte_at(table, at);
    if ((byte & kBegins) != 0) break;
    number |= static_cast<std::uint32_t>(byte & (more - 1)) << shift;
    if ((byte & more) == 0) break;
  }
  return number;
}

/// What is added to the line, modulo 2^32.
std::uint32_t line_step(std::span<const std::byte> table, std::size_t entry, unsigned kind) {
  switch (kind) {
    case kOneLine1:
      return 1;
    case kOneLine2:
      return 2;
    case kNoColumns:
    case kLong: {
      const std::uint32_t number = number_at(table, entry + 1);
      return (number & 1) != 0 ? -(number >> 1) : number >> 1;
    }
    default:
      return 0;
  }
}

}  // namespace

std::uint32_t line_of(std::span<const std::byte> table, std::uint32_t first_line, std::uint32_t offset) {
  std::uint32_t line = first_line;
  std::uint64_t end = 0;
  for (std::size_t at = 0; at < table.size();) {
    const unsigned head = byte_at(table, at);
    if ((head & kBegins) == 0) return 0;  // not such a table
    const unsigned kind = head >> 3 & 0xf;
    line += line_step(table, at, kind);
    end += ((head & 7) + 1) * std::uint64_t{kUnit};
    if (offset < end) return kind == kNone || line > INT32_MAX ? 0 : line;
    do ++at;
    while (at < table.size() && (byte_at(table, at) & kBegins) == 0);
  }
  return 0;
}

}  // namespace usdt::interpreter
