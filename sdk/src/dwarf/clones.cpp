// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/clones.hpp"

#include <algorithm>
#include <string_view>

namespace usdt::dwarf {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// What follows the first '.' of a symbol: "isra.0.constprop.1". Of suffixes that are not known, the worst.
CodeName by_suffixes(std::string_view name) {
  CodeName found = CodeName::as_written;
  const auto dot = name.find('.', 1);
  if (dot == std::string_view::npos) return found;
  name.remove_prefix(dot + 1);
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('.'));
    name.remove_prefix(std::min(name.size(), part.size() + 1));
    if (is_number(part) || part == "lto_priv" || part == "llvm" || part == "localalias" || part == "cold") continue;
    found = std::max(found, part == "constprop" ? CodeName::other_args : CodeName::other_result);
  }
  return found;
}

}  // namespace

CodeNames::CodeNames(const elf::OpenedFile& opened, const std::optional<elf::DebugFile>& debug_file) {
  add(opened.file, opened.image);
  if (debug_file) add(debug_file->file, debug_file->image);
}

void CodeNames::add(const elf::File& file, const elf::Image& image) {
  elf::SymbolTables tables(file, image);
  for (std::uint32_t i = 0; i < image.sections.size(); ++i) {
    const std::uint32_t type = image.sections[i].type;
    if (type != SHT_SYMTAB && type != SHT_DYNSYM) continue;
    const elf::SymbolTable& table = tables.at(i);
    for (std::size_t n = 0; n < table.size(); ++n) {
      const elf::Symbol symbol = table[n];
      if (symbol.section == SHN_UNDEF || (symbol.type != STT_FUNC && symbol.type != STT_GNU_IFUNC)) continue;
      Known& known = names_[symbol.value];
      known.name = std::max(known.name, by_suffixes(table.name_of(symbol)));
      known.external |= symbol.binding != STB_LOCAL;
      known.replaceable |= type == SHT_DYNSYM && symbol.binding == STB_GLOBAL && symbol.visibility == STV_DEFAULT;
    }
  }
}

CodeName CodeNames::at(VirtAddr entry) const {
  const auto found = names_.find(entry.value);
  return found == names_.end() ? CodeName::unknown : found->second.name;
}

bool CodeNames::is_external(VirtAddr entry) const {
  const auto found = names_.find(entry.value);
  return found != names_.end() && found->second.external;
}

bool CodeNames::is_replaceable(VirtAddr entry) const {
  const auto found = names_.find(entry.value);
  return found != names_.end() && found->second.replaceable;
}

}  // namespace usdt::dwarf
