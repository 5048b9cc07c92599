// SPDX-License-Identifier: BSD-2-Clause
#include "elf/function_pieces.hpp"

#include <algorithm>
#include <span>

#include "base/symbol_name.hpp"
#include "elf/frame_pieces.hpp"

namespace usdt::elf {
namespace {

/// Returns the members of `all`, sorted by `of`, that have `key`. (clang 14 has no subrange of libstdc++.)
template <class Each, class Key, class Of>
std::span<const Each> with_key(const std::vector<Each>& all, const Key& key, Of of) {
  return {std::ranges::lower_bound(all, key, {}, of), std::ranges::upper_bound(all, key, {}, of)};
}

}  // namespace

FunctionPieces::FunctionPieces(const ElfFile& file, const StopToken& stop)
    : file_(Inside::of(file)), table_(*file_, stop) {
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

FunctionPieces::~FunctionPieces() = default;

bool FunctionPieces::is_one(std::string_view symbol) const {
  const auto named = with_key(by_name_, symbol, &FunctionEntry::symbol);
  return std::ranges::all_of(named, [&](const FunctionEntry* each) { return each->address == named.front()->address; });
}

std::vector<CodePart> FunctionPieces::of(VirtAddr entry) const {
  std::vector<CodePart> found;
  for (const FunctionEntry* name : with_key(by_address_, entry.value, &FunctionEntry::address)) {
    const auto pieces = with_key(pieces_, name->symbol, &Named::first);
    if (pieces.empty()) continue;
    const bool maybe = !is_one(name->symbol);
    for (const Named& piece : pieces)
      found.push_back({.address = VirtAddr(piece.second->address), .size = piece.second->size, .maybe = maybe});
  }
  return found;
}

bool FunctionPieces::may_begin_at(VirtAddr entry) const {
  constexpr std::ptrdiff_t most_around = 64;  // symbols before it that may go on there
  const auto here = with_key(by_address_, entry.value, &FunctionEntry::address);
  if (!here.empty())
    return std::ranges::any_of(here, [](const FunctionEntry* each) { return !is_cold_half(each->symbol); });
  const auto next = std::ranges::lower_bound(by_address_, entry.value, {}, &FunctionEntry::address);
  const std::ptrdiff_t before = std::min(next - by_address_.begin(), most_around);
  return std::none_of(next - before, next,
                      [&](const FunctionEntry* each) { return entry.value - each->address < each->size; });
}

std::optional<CodePart> FunctionPieces::clone_at(VirtAddr entry) const {
  for (const FunctionEntry* name : with_key(by_address_, entry.value, &FunctionEntry::address))
    if (is_clone(name->symbol)) return CodePart{.address = entry, .size = name->size};
  return std::nullopt;
}

std::optional<CodePart> FunctionPieces::unnamed_at(VirtAddr address) const {
  constexpr std::ptrdiff_t most_around = 64;  // symbols before it that may go on there
  const auto after = std::ranges::upper_bound(by_address_, address.value, {}, &FunctionEntry::address);
  const std::ptrdiff_t before = std::min(after - by_address_.begin(), most_around);
  if (std::any_of(after - before, after, [&](const FunctionEntry* each) {
        return each->address == address.value || address.value - each->address < each->size;
      }))
    return std::nullopt;
  return frames().piece_at(address);
}

const FramePieces& FunctionPieces::frames() const {
  if (!frames_) frames_ = std::make_unique<const FramePieces>(file_->file, file_->image);
  return *frames_;
}

std::optional<CodePart> FunctionPieces::function_at(VirtAddr address) const {
  constexpr std::ptrdiff_t most_around = 64;  // symbols before it that may go on there
  const auto after = std::ranges::upper_bound(by_address_, address.value, {}, &FunctionEntry::address);
  const std::ptrdiff_t before = std::min(after - by_address_.begin(), most_around);
  for (auto each = after; each != after - before;) {
    --each;
    if (address.value - (*each)->address < (*each)->size)
      return CodePart{.address = VirtAddr((*each)->address), .size = (*each)->size};
  }
  return std::nullopt;
}

bool FunctionPieces::is_called(VirtAddr address, std::string_view symbol) const {
  const auto here = with_key(by_address_, address.value, &FunctionEntry::address);
  return std::ranges::any_of(here, [&](const FunctionEntry* each) { return each->symbol == symbol; });
}

bool FunctionPieces::may_land_in(VirtAddr address) const { return frames().may_land_in(address); }

}  // namespace usdt::elf
