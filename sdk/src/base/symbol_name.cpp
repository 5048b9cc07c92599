// SPDX-License-Identifier: BSD-2-Clause
#include "base/symbol_name.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace usdt {
namespace {

/// A word that stands behind a dot of a symbol, "part" of "work.part.0", and ends at the next one, or before the "]" of
/// a demangler.
struct Word {
  std::size_t dot = std::string_view::npos;  ///< npos: there is none
  std::string_view text = {};
  bool numbered = false;  ///< the next word is a number
};

std::string_view first_word(std::string_view text) noexcept { return text.substr(0, text.find_first_of(".]")); }

bool is_number(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// The first word that is wanted.
template <class Wanted>
Word find_word(std::string_view symbol, Wanted is_wanted) noexcept {
  for (std::size_t dot = symbol.find('.', 1); dot != symbol.npos; dot = symbol.find('.', dot + 1)) {
    Word word{.dot = dot, .text = first_word(symbol.substr(dot + 1))};
    const std::string_view behind = symbol.substr(dot + 1 + word.text.size());
    word.numbered = behind.starts_with('.') && is_number(first_word(behind.substr(1)));
    if (is_wanted(word)) return word;
  }
  return {};
}

bool is_one_of(std::string_view text, std::span<const std::string_view> words) noexcept {
  return std::ranges::find(words, text) != words.end();
}

}  // namespace

bool is_cold_half(std::string_view symbol) noexcept { return !other_half(symbol).empty(); }

std::string_view other_half(std::string_view symbol) noexcept {
  // Clang's sections of basic blocks (MachineBasicBlock::getSymbol()): "work.__part.1"; landing pads in "work.eh".
  constexpr std::array<std::string_view, 2> halves = {"cold", "__part"};
  constexpr std::string_view pads = ".eh";
  std::size_t at = find_word(symbol, [&](const Word& word) { return is_one_of(word.text, halves); }).dot;
  if (at == symbol.npos && symbol.size() > pads.size() && symbol.ends_with(pads)) at = symbol.size() - pads.size();
  return at == symbol.npos ? std::string_view() : symbol.substr(0, at);
}

bool is_clone(std::string_view symbol) noexcept {
  constexpr std::array<std::string_view, 3> clones = {"part", "constprop", "isra"};
  const Word found = find_word(symbol, [&](const Word& word) { return word.numbered && is_one_of(word.text, clones); });
  return found.dot != symbol.npos;
}

std::string_view piece_suffix(std::string_view symbol) noexcept {
  constexpr std::array<std::string_view, 5> pieces = {"cold", "actor", "resume", "destroy", "cleanup"};
  const Word found = find_word(
      symbol, [&](const Word& word) { return is_one_of(word.text, pieces) || (word.text == "part" && word.numbered); });
  return found.dot == symbol.npos ? std::string_view() : symbol.substr(found.dot, found.text.size() + 1);
}

}  // namespace usdt
