// SPDX-License-Identifier: BSD-2-Clause
// In a relocatable object the words of a note are still relocations. Applied as a linker would with every section at
// address 0, they give addresses relative to the site's section, which is what readelf -n prints.
#include <fmt/format.h>

#include <algorithm>

#include "arch/arch.hpp"
#include "elf/elf_impl.hpp"

namespace usdt::elf {
namespace {

void store_word(std::span<std::uint8_t> bytes, std::uint64_t at, std::uint64_t value, bool is64) noexcept {
  for (std::uint64_t i = 0; i < (is64 ? 8U : 4U); ++i) bytes[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
}

}  // namespace

std::vector<Relocation> relocations_of(const Image& image, const Section& section, ByteView table) {
  std::vector<Relocation> all;
  const bool has_addend = section.type == SHT_RELA;
  const std::uint64_t word = image.is64 ? 8 : 4;
  const std::uint64_t entry = (has_addend ? 3 : 2) * word;
  all.reserve(table.size() / entry);
  for (std::uint64_t at = 0; within(at, entry, table.size()); at += entry) {
    Relocation r;
    r.offset = load_word(table, at, image.is64);
    const std::uint64_t info = load_word(table, at + word, image.is64);
    r.symbol = static_cast<std::uint32_t>(image.is64 ? ELF64_R_SYM(info) : ELF32_R_SYM(info));
    r.type = static_cast<std::uint32_t>(image.is64 ? ELF64_R_TYPE(info) : ELF32_R_TYPE(info));
    if (has_addend) r.addend = load_word(table, at + 2 * word, image.is64);
    all.push_back(r);
  }
  return all;
}

NoteRelocations::NoteRelocations(const File& file, const Image& image, Warnings& warnings)
    : image_(image), warnings_(warnings), claims_(file, image), symbols_(file, image) {
  for (const Section& s : image.sections) {
    if (s.type == SHT_REL || s.type == SHT_RELA) relocations_.push_back(&s);
  }
  std::ranges::stable_sort(relocations_, {}, &Section::info);
}

std::vector<std::uint64_t> NoteRelocations::apply(std::size_t section, std::span<std::uint8_t> notes) {
  std::vector<std::uint64_t> filled;
  for (auto at = std::ranges::lower_bound(relocations_, section, {}, &Section::info);
       at != relocations_.end() && (*at)->info == section; ++at) {
    for (const Relocation& r : relocations_of(image_, **at, claims_.read(**at))) apply_one(**at, r, notes, filled);
  }
  std::ranges::sort(filled);
  return filled;
}

void NoteRelocations::apply_one(const Section& relocations, const Relocation& r, std::span<std::uint8_t> notes,
                                std::vector<std::uint64_t>& filled) {
  const SymbolTable& symbols = symbols_.at(relocations.link);
  const std::uint64_t word = image_.is64 ? 8 : 4;
  if (r.type != arch::for_machine(image_.machine).relocations.address || r.symbol >= symbols.size() ||
      !within(r.offset, word, notes.size())) {
    warnings_.add(image_.start + relocations.offset,
                  fmt::format("relocation of type {} for note byte {:#x}: not applied", r.type, r.offset));
    return;
  }
  const std::uint64_t addend = r.addend ? *r.addend : load_word(notes, r.offset, image_.is64);
  store_word(notes, r.offset, symbols[r.symbol].value + addend, image_.is64);
  filled.push_back(r.offset);
}

}  // namespace usdt::elf
