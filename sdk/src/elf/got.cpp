// SPDX-License-Identifier: BSD-2-Clause
// Global offset table: which slot holds the address of a symbol, and where the table itself is.
#include <fmt/format.h>

#include <algorithm>

#include "elf/symbols_impl.hpp"

namespace usdt::elf {
namespace {

struct GotRelocations {
  std::uint32_t glob_dat;  ///< the slot becomes the symbol's address
  std::uint32_t relative;  ///< the slot becomes load bias + addend
};

GotRelocations got_relocations(Machine machine) noexcept {
  switch (machine) {
    case Machine::x86_64:
      return {R_X86_64_GLOB_DAT, R_X86_64_RELATIVE};
    case Machine::i386:
      return {R_386_GLOB_DAT, R_386_RELATIVE};
    case Machine::aarch64:
      return {R_AARCH64_GLOB_DAT, R_AARCH64_RELATIVE};
  }
  return {};
}

/// Reads the slots of one file: words of .got as linked, then what relocations make of them.
class GotReader {
 public:
  explicit GotReader(const OpenedFile& opened)
      : file_(opened.file), image_(opened.image), types_(got_relocations(opened.image.machine)) {}

  GotSlots read() {
    for (const Section& s : image_.sections) {
      if (is_got(s)) read_words(s);
    }
    for (const Section& s : image_.sections) {
      if ((s.type == SHT_REL || s.type == SHT_RELA) && (s.flags & SHF_ALLOC) != 0) read_relocations(s);
    }
    return std::move(slots_);
  }

 private:
  [[nodiscard]] bool is_got(const Section& s) const noexcept {
    return image_.name(s) == ".got" || image_.name(s) == ".got.plt";
  }
  [[nodiscard]] bool in_got(std::uint64_t address) const noexcept {
    return std::ranges::any_of(
        image_.sections, [&](const Section& s) { return is_got(s) && address >= s.addr && address - s.addr < s.size; });
  }

  /// Words that hold an address as they stand: of programs at a fixed address, and where the addend of a relocation
  /// is kept in place (i386, DT_RELR).
  void read_words(const Section& s) {
    const Bytes bytes = section_bytes(file_, image_, s);
    const std::uint64_t word = image_.is64 ? 8 : 4;
    for (std::uint64_t at = 0; within(at, word, bytes.size()); at += word) {
      const std::uint64_t value = load_word(bytes, at, image_.is64);
      if (value != 0) slots_.by_value.emplace(value, s.addr + at);
    }
  }

  void read_relocations(const Section& s) {
    std::optional<SymbolTable> symbols;
    if (s.link < image_.sections.size()) symbols.emplace(file_, image_, image_.sections[s.link]);
    const Bytes table = section_bytes(file_, image_, s);
    for (const Relocation& r : relocations_of(image_, s, table)) {
      if (r.type == types_.glob_dat && symbols && r.symbol < symbols->size()) {
        slots_.by_name.emplace((*symbols)[r.symbol].name, r.offset);
      } else if (r.type == types_.relative && r.addend && in_got(r.offset)) {
        slots_.by_value.insert_or_assign(*r.addend, r.offset);
      }
    }
  }

  const File& file_;
  const Image& image_;
  GotRelocations types_;
  GotSlots slots_;
};

}  // namespace

std::optional<std::uint64_t> dynamic_value(const OpenedFile& opened, std::uint64_t wanted) {
  const Image& image = opened.image;
  const auto dynamic = std::ranges::find(image.segments, PT_DYNAMIC, &Segment::type);
  if (dynamic == image.segments.end()) return std::nullopt;
  constexpr std::uint64_t kMax = 1 << 16;
  const Bytes bytes = opened.file.bytes(image.start + dynamic->offset, std::min(dynamic->filesz, kMax));
  const std::uint64_t word = image.is64 ? 8 : 4;
  for (std::uint64_t at = 0; within(at, 2 * word, bytes.size()); at += 2 * word) {
    const std::uint64_t tag = load_word(bytes, at, image.is64);
    if (tag == DT_NULL) break;
    if (tag == wanted) return load_word(bytes, at + word, image.is64);
  }
  return std::nullopt;
}

GotSlots read_got(const OpenedFile& opened) { return GotReader(opened).read(); }

Result<VirtAddr> SymbolIndex::got_slot(std::string_view name) const {
  const GotSlots& slots = impl_->got.get([this] { return read_got(*impl_->opened); });
  if (const auto slot = slots.by_name.find(std::string(name)); slot != slots.by_name.end()) {
    return VirtAddr(slot->second);
  }
  // A symbol bound at link time has no relocation of its own; its slot is the one with its address.
  if (const auto target = address(name)) {
    const auto slot = slots.by_value.find(target->value);
    if (slot != slots.by_value.end()) return VirtAddr(slot->second);
  }
  return fail(ErrorKind::not_found, fmt::format("symbol '{}' has no slot in the global offset table", name));
}

Result<VirtAddr> SymbolIndex::global_offset_table() const {
  if (auto symbol = address("_GLOBAL_OFFSET_TABLE_")) return symbol;
  const Image& image = impl_->opened->image;
  // On i386 and x86-64 that is where DT_PLTGOT points.
  if (const auto pltgot = dynamic_value(*impl_->opened, DT_PLTGOT)) return VirtAddr(*pltgot);
  for (const char* name : {".got.plt", ".got"}) {
    if (const Section* section = image.find(name)) return VirtAddr(section->addr);
  }
  return fail(ErrorKind::not_found, "the file has no global offset table");
}

}  // namespace usdt::elf
