// SPDX-License-Identifier: BSD-2-Clause
#include "base/symbol_name.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace usdt {
namespace {

bool is_number(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Where `name` has `mark` as a whole part between dots, or before the "]" of a demangler; npos: nowhere.
std::size_t find_part(std::string_view symbol, std::string_view mark) noexcept {
  for (std::size_t at = symbol.find(mark, 1); at != symbol.npos; at = symbol.find(mark, at + 1)) {
    const std::size_t end = at + mark.size();
    if (end == symbol.size() || symbol[end] == '.' || symbol[end] == ']') return at;
  }
  return symbol.npos;
}

}  // namespace

bool is_cold_half(std::string_view symbol) noexcept { return !other_half(symbol).empty(); }

std::string_view other_half(std::string_view symbol) noexcept {
  // Clang's sections of basic blocks (MachineBasicBlock::getSymbol()): "work.__part.1"; landing pads in "work.eh".
  std::size_t at = std::min(find_part(symbol, ".cold"), find_part(symbol, ".__part"));
  constexpr std::string_view pads = ".eh";
  if (at == symbol.npos && symbol.size() > pads.size() && symbol.ends_with(pads)) at = symbol.size() - pads.size();
  return at == symbol.npos ? std::string_view() : symbol.substr(0, at);
}

bool is_clone(std::string_view symbol) noexcept {
  for (const std::string_view mark : {".part.", ".constprop.", ".isra."}) {
    const std::size_t at = symbol.find(mark, 1);
    if (at == symbol.npos) continue;
    const std::string_view rest = symbol.substr(at + mark.size());
    if (is_number(rest.substr(0, rest.find('.')))) return true;
  }
  return false;
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
