// SPDX-License-Identifier: BSD-2-Clause
#include "common/utf8.hpp"

#include <algorithm>
#include <cstdint>

namespace usdt::tools {
namespace {

/// Length a first byte announces; 0 for bytes that cannot be first.
std::size_t announced(unsigned char first) noexcept {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return 2;
  if (first >= 0xe0 && first <= 0xef) return 3;
  if (first >= 0xf0 && first <= 0xf4) return 4;
  return 0;
}

}  // namespace

std::size_t utf8_sequence(std::string_view bytes) noexcept {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const std::size_t length = announced(at(0));
  if (length == 0 || length > bytes.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((at(i) & 0xc0) != 0x80) return 0;
  if (length < 3) return length;
  const bool overlong = (at(0) == 0xe0 && at(1) < 0xa0) || (at(0) == 0xf0 && at(1) < 0x90);
  const bool surrogate = at(0) == 0xed && at(1) >= 0xa0;
  const bool too_large = at(0) == 0xf4 && at(1) >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

std::string_view without_partial_utf8(std::string_view bytes) noexcept {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, bytes.size()); ++back) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;
    return announced(byte) > back ? bytes.substr(0, bytes.size() - back) : bytes;
  }
  return bytes;
}

}  // namespace usdt::tools
