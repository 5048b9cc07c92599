// SPDX-License-Identifier: BSD-2-Clause
#include "elf/function_pieces.hpp"

#include <algorithm>

#include "base/symbol_name.hpp"

namespace usdt::elf {

FunctionPieces::FunctionPieces(const ElfFile& file, const StopToken& stop) : table_(*Inside::of(file), stop) {
  for (const FunctionEntry& entry : table_.entries) {
    by_address_.push_back(&entry);
    by_name_.push_back(&entry);
    if (const std::string_view whole = other_half(entry.symbol); !whole.empty()) pieces_.emplace_back(whole, &entry);
  }
  for (const FunctionEntry& block : table_.blocks) {
    by_address_.push_back(&block);
    pieces_.emplace_back(other_half(block.symbol), &block);
  }
  std::ranges::sort(by_address_, {}, &FunctionEntry::address);
  std::ranges::sort(by_name_, {}, &FunctionEntry::symbol);
  std::ranges::sort(pieces_, {}, &Named::first);
}

bool FunctionPieces::is_one(std::string_view symbol) const {
  const auto named = std::ranges::equal_range(by_name_, symbol, {}, &FunctionEntry::symbol);
  return std::ranges::all_of(named, [&](const FunctionEntry* each) { return each->address == named.front()->address; });
}

std::vector<CodePart> FunctionPieces::of(VirtAddr entry) const {
  std::vector<CodePart> found;
  for (const FunctionEntry* name : std::ranges::equal_range(by_address_, entry.value, {}, &FunctionEntry::address)) {
    const auto pieces = std::ranges::equal_range(pieces_, name->symbol, {}, &Named::first);
    if (pieces.empty()) continue;
    const bool maybe = !is_one(name->symbol);
    for (const Named& piece : pieces)
      found.push_back({.address = VirtAddr(piece.second->address), .size = piece.second->size, .maybe = maybe});
  }
  return found;
}

bool FunctionPieces::may_begin_at(VirtAddr entry) const {
  constexpr std::ptrdiff_t most_around = 64;  // symbols before it that may go on there
  const auto here = std::ranges::equal_range(by_address_, entry.value, {}, &FunctionEntry::address);
  if (!here.empty())
    return std::ranges::any_of(here, [](const FunctionEntry* each) { return !is_cold_half(each->symbol); });
  const std::ptrdiff_t before = std::min(here.begin() - by_address_.begin(), most_around);
  return std::none_of(here.begin() - before, here.begin(),
                      [&](const FunctionEntry* each) { return entry.value - each->address < each->size; });
}

std::optional<CodePart> FunctionPieces::clone_at(VirtAddr entry) const {
  for (const FunctionEntry* name : std::ranges::equal_range(by_address_, entry.value, {}, &FunctionEntry::address))
    if (is_clone(name->symbol)) return CodePart{.address = entry, .size = name->size};
  return std::nullopt;
}

}  // namespace usdt::elf
