// SPDX-License-Identifier: BSD-2-Clause
#include "base/symbol_name.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

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

std::string_view piece_suffix(std::string_view symbol) noexcept {
  constexpr std::string_view coroutine[] = {"actor", "resume", "destroy", "cleanup"};
  for (std::size_t dot = symbol.find('.', 1); dot != symbol.npos; dot = symbol.find('.', dot + 1)) {
    const std::string_view behind = symbol.substr(dot + 1);
    const std::string_view word = behind.substr(0, behind.find_first_of(".]"));
    const std::string_view next = behind.substr(word.size());
    const bool is_numbered = next.size() > 1 && next[0] == '.' && next[1] >= '0' && next[1] <= '9';
    const bool is_piece = word == "cold" || (word == "part" && is_numbered) ||
                          std::find(std::begin(coroutine), std::end(coroutine), word) != std::end(coroutine);
    if (is_piece) return symbol.substr(dot, word.size() + 1);
  }
  return {};
}

}  // namespace usdt
