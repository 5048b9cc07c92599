// SPDX-License-Identifier: BSD-2-Clause
#include "elf/unwinding.hpp"

#include <elf.h>

#include <cstdint>
#include <string_view>

#include "elf/symbol_tables.hpp"

namespace usdt::elf {

bool may_unwind(const File& file, const Image& image) {
  SymbolTables tables(file, image);
  for (std::uint32_t i = 0; i < image.sections.size(); ++i) {
    const std::uint32_t type = image.sections[i].type;
    if (type != SHT_SYMTAB && type != SHT_DYNSYM) continue;
    const SymbolTable& table = tables.at(i);
    for (std::size_t n = 0; n < table.size(); ++n) {
      const std::string_view name = table.name_of(table[n]);
      if (name == "__gxx_personality_v0" || name == "rust_eh_personality") return true;
    }
  }
  return false;
}

}  // namespace usdt::elf
