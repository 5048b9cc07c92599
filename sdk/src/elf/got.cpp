// SPDX-License-Identifier: BSD-2-Clause
// Global offset table: which slot holds the address of a symbol, and where the table itself is.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "arch/arch.hpp"
#include "elf/symbols_impl.hpp"

namespace usdt::elf {
namespace {

bool is_got(const Image& image, const Section& section) noexcept {
  return image.is_called(section, ".got") || image.is_called(section, ".got.plt");
}

}  // namespace

void AddressSet::add(std::uint64_t start, std::uint64_t size) {
  if (size != 0) ranges_.push_back({start, std::max(start, start + (size - 1))});
}

void AddressSet::sort() {
  std::ranges::sort(ranges_, {}, &Range::start);
  // Each range ends no earlier than those before it, so that only the last one that starts low enough has to be asked.
  for (std::size_t i = 1; i < ranges_.size(); ++i) ranges_[i].last = std::max(ranges_[i].last, ranges_[i - 1].last);
}

bool AddressSet::contains(std::uint64_t address) const noexcept {
  const auto next = std::ranges::upper_bound(ranges_, address, {}, &Range::start);
  return next != ranges_.begin() && address <= std::prev(next)->last;
}

DynamicValues read_dynamic_values(const OpenedFile& opened) {
  DynamicValues values;
  const Image& image = opened.image;
  const auto dynamic = std::ranges::find(image.segments, PT_DYNAMIC, &Segment::type);
  if (dynamic == image.segments.end()) return values;
  constexpr std::uint64_t kMax = 1 << 16;
  const Bytes bytes = opened.file.bytes(image.start + dynamic->offset, std::min(dynamic->filesz, kMax));
  const std::uint64_t word = image.is64 ? 8 : 4;
  for (std::uint64_t at = 0; within(at, 2 * word, bytes.size()); at += 2 * word) {
    const std::uint64_t tag = load_word(bytes, at, image.is64);
    if (tag == DT_NULL) break;
    auto* const value = tag == DT_FLAGS_1  ? &values.flags_1
                        : tag == DT_SONAME ? &values.soname
                        : tag == DT_PLTGOT ? &values.pltgot
                                           : nullptr;
    if (value != nullptr && !*value) *value = load_word(bytes, at + word, image.is64);
  }
  return values;
}

GotSlots::GotSlots(const OpenedFile& opened) : symbols_(std::make_unique<SymbolTables>(opened.file, opened.image)) {
  Claims words(opened.file, opened.image);
  read_words(opened.image, words);
  read_relocations(opened.file, opened.image);
}

/// Words that hold an address as they stand: of programs at a fixed address, and where the addend of a relocation is
/// kept in place (i386, DT_RELR).
void GotSlots::read_words(const Image& image, Claims& claims) {
  for (const Section& s : image.sections) {
    if (!is_got(image, s)) continue;
    const Bytes bytes = claims.read(s);
    const std::uint64_t word = image.is64 ? 8 : 4;
    for (std::uint64_t at = 0; within(at, word, bytes.size()); at += word) {
      const std::uint64_t value = load_word(bytes, at, image.is64);
      if (value != 0) words_.push_back({value, s.addr + at});
    }
  }
  // Slots with equal values keep their order: the first one is as good as any.
  std::ranges::stable_sort(words_, {}, &ValueSlot::value);
}

void GotSlots::read_relocations(const File& file, const Image& image) {
  AddressSet got;
  for (const Section& s : image.sections) {
    if (is_got(image, s)) got.add(s.addr, s.size);
  }
  got.sort();
  Claims claims(file, image);
  for (const Section& s : image.sections) {
    if ((s.type == SHT_REL || s.type == SHT_RELA) && (s.flags & SHF_ALLOC) != 0)
      take_relocations(image, s, claims, got);
  }
  std::ranges::stable_sort(by_name_, {}, &NamedSlot::key);
  std::ranges::stable_sort(relative_, {}, &ValueSlot::value);
}

void GotSlots::take_relocations(const Image& image, const Section& section, Claims& claims, const AddressSet& got) {
  const arch::RelocationTypes& types = arch::for_machine(image.machine).relocations;
  for (const Relocation& r : relocations_of(image, section, claims.read(section))) {
    if (r.type == types.glob_dat) {
      const SymbolTable& symbols = symbols_->at(section.link);
      if (r.symbol < symbols.size()) by_name_.push_back({HashedName(symbols.name_of(symbols[r.symbol])), r.offset});
    } else if (r.type == types.relative && r.addend && got.contains(r.offset)) {
      relative_.push_back({*r.addend, r.offset});
    }
  }
}

std::optional<std::uint64_t> GotSlots::of_name(std::string_view name) const noexcept {
  const HashedName key(name);
  const auto found = std::ranges::lower_bound(by_name_, key, {}, &NamedSlot::key);
  if (found == by_name_.end() || found->key != key) return std::nullopt;
  return found->slot;
}

const std::uint64_t* GotSlots::find(const std::vector<ValueSlot>& slots, std::uint64_t value) noexcept {
  const auto found = std::ranges::lower_bound(slots, value, {}, &ValueSlot::value);
  return found == slots.end() || found->value != value ? nullptr : &found->slot;
}

std::optional<std::uint64_t> GotSlots::of_value(std::uint64_t address) const noexcept {
  for (const auto* slots : {&relative_, &words_}) {
    if (const std::uint64_t* slot = find(*slots, address)) return *slot;
  }
  return std::nullopt;
}

Result<VirtAddr> SymbolIndex::got_slot(std::string_view name) const {
  const GotSlots& slots = impl_->got.get([this] { return GotSlots(*impl_->opened); });
  if (const auto slot = slots.of_name(name)) return VirtAddr(*slot);
  // A symbol bound at link time has no relocation of its own; its slot is the one with its address.
  if (const auto target = address(name)) {
    if (const auto slot = slots.of_value(target->value)) return VirtAddr(*slot);
  }
  return fail(ErrorKind::not_found, fmt::format("symbol '{}' has no slot in the global offset table", name));
}

Result<VirtAddr> SymbolIndex::global_offset_table() const {
  return impl_->offset_table.get([this]() -> Result<VirtAddr> {
    if (auto symbol = address("_GLOBAL_OFFSET_TABLE_")) return symbol;
    // On i386 and x86-64 that is where DT_PLTGOT points.
    if (const auto& pltgot = impl_->dynamic().pltgot) return VirtAddr(*pltgot);
    for (const char* name : {".got.plt", ".got"}) {
      if (const Section* section = impl_->opened->image.find(name)) return VirtAddr(section->addr);
    }
    return fail(ErrorKind::not_found, "the file has no global offset table");
  });
}

}  // namespace usdt::elf
