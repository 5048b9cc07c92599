// SPDX-License-Identifier: BSD-2-Clause
#include "base/symbol_name.hpp"

#include <cstddef>

namespace usdt {

bool is_cold_half(std::string_view symbol) noexcept { return !other_half(symbol).empty(); }

std::string_view other_half(std::string_view symbol) noexcept {
  constexpr std::string_view cold = ".cold";
  for (std::size_t at = symbol.find(cold, 1); at != symbol.npos; at = symbol.find(cold, at + 1)) {
    const std::size_t end = at + cold.size();
    if (end == symbol.size() || symbol[end] == '.' || symbol[end] == ']') return symbol.substr(0, at);
  }
  return {};
}

}  // namespace usdt
