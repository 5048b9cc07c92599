// SPDX-License-Identifier: BSD-2-Clause
#include "elf/symbol_versions.hpp"

namespace usdt::elf {
namespace {

// The highest bit says that the linker does not take this version for a plain name.
constexpr std::uint16_t kNumber = 0x7fff;
static_assert(sizeof(Elf32_Verdef) == sizeof(Elf64_Verdef) && sizeof(Elf32_Verdaux) == sizeof(Elf64_Verdaux));

}  // namespace

SymbolVersions::SymbolVersions(const File& file, const Image& image, SymbolTables& tables) {
  Claims claims(file, image);
  for (const Section& section : image.sections) {
    if (section.type == SHT_GNU_versym) {
      numbers_.try_emplace(section.link, claims.read(section));
    } else if (section.type == SHT_GNU_verdef) {
      const auto strings = tables.strings_at(section.link);
      if (strings == nullptr) continue;
      read_definitions(claims.read(section), *strings);
      strings_.push_back(strings);
    }
  }
}

void SymbolVersions::read_definitions(ByteView bytes, StringTable& strings) {
  strings.allow(bytes.size() / sizeof(Elf64_Verdef));
  for (std::uint64_t at = 0; within(at, sizeof(Elf64_Verdef), bytes.size());) {
    const auto definition = load<Elf64_Verdef>(bytes, at);
    const std::uint64_t name_at = at + little(definition.vd_aux);  // the first name is the version's own
    const bool base = (little(definition.vd_flags) & VER_FLG_BASE) != 0;
    if (!base && within(name_at, sizeof(Elf64_Verdaux), bytes.size())) {
      const auto name = load<Elf64_Verdaux>(bytes, name_at);
      names_.try_emplace(little(definition.vd_ndx) & kNumber, strings.take(little(name.vda_name)));
    }
    if (definition.vd_next == 0) return;
    at += little(definition.vd_next);
  }
}

std::string_view SymbolVersions::of(std::uint32_t table, std::size_t index) const noexcept {
  const auto numbers = numbers_.find(table);
  if (numbers == numbers_.end() || !within(index * 2, 2, numbers->second.size())) return {};
  const auto name = names_.find(little(load<std::uint16_t>(numbers->second, index * 2)) & kNumber);
  return name == names_.end() ? std::string_view() : name->second;
}

}  // namespace usdt::elf
