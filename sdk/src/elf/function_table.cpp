// SPDX-License-Identifier: BSD-2-Clause
#include "elf/function_table.hpp"

#include <algorithm>

#include "base/symbol_name.hpp"
#include "elf/go_functions.hpp"

namespace usdt::elf {
namespace {

constexpr std::size_t kStopInterval = 1024;

bool is_function(const Symbol& symbol) noexcept {
  return (symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC) && symbol.section != SHN_UNDEF &&
         symbol.section != SHN_ABS;
}

bool may_be_block(const Symbol& symbol) noexcept {
  return symbol.type == STT_NOTYPE && symbol.binding == STB_LOCAL && symbol.size > 0 && symbol.section != SHN_UNDEF &&
         symbol.section != SHN_ABS;
}

}  // namespace

FunctionTable::FunctionTable(const OpenedFile& main, const StopToken& stop) : main_(main), stop_(stop) {
  read(main.file, main.image, 0);
  if (has_symtab || stopped()) return;
  if (const auto debug = find_debug_file(main)) {
    read(debug->file, debug->image, shift_between(debug->image, main.image));
  }
  if (has_symtab || stopped()) return;
  if (const auto embedded = embedded_debug_file(main)) read(embedded->file, embedded->image, 0);
  if (!has_symtab && !stopped()) read_go(main);
}

void FunctionTable::read_go(const OpenedFile& main) {
  const GoFunctions functions(main.file, main.image);
  for (const GoFunction& each : functions.all())
    entries.push_back({.address = each.address,
                       .size = each.size,
                       .symbol = each.name,
                       .version = {},
                       .binding = STB_LOCAL,
                       .ifunc = false});
  go_names_ = functions.bytes();
  has_symtab = !functions.all().empty();
}

void FunctionTable::read(const File& file, const Image& image, std::uint64_t shift) {
  stored += file.stored();
  SymbolTables tables(file, image);
  const SymbolVersions& versions = versions_.emplace_back(file, image, tables);
  std::vector<std::uint32_t> numbers;
  std::size_t most = entries.size();
  for (std::uint32_t i = 0; i < image.sections.size(); ++i) {
    const std::uint32_t type = image.sections[i].type;
    if (type != SHT_SYMTAB && type != SHT_DYNSYM) continue;
    has_symtab |= type == SHT_SYMTAB;
    numbers.push_back(i);
    most += tables.at(i).size();
  }
  entries.reserve(most);
  for (const std::uint32_t i : numbers) {
    if (stopped()) return;
    read_table(tables.at(i), i, versions, shift);
  }
}

void FunctionTable::read_table(const SymbolTable& table, std::uint32_t number, const SymbolVersions& versions,
                               std::uint64_t shift) {
  if (table.size() == 0 || table.strings() == nullptr) return;
  strings_.push_back(table.strings());
  for (std::size_t i = 1; i < table.size(); ++i) {
    if (i % kStopInterval == 0 && stopped()) return;
    const Symbol symbol = table[i];
    if (may_be_block(symbol)) {
      const std::string_view name = table.full_name_of(symbol);
      if (is_cold_half(name)) blocks.push_back({symbol.value + shift, symbol.size, name, {}, symbol.binding, false});
    }
    if (!is_function(symbol)) continue;
    const std::string_view name = table.full_name_of(symbol);
    if (name.empty()) continue;
    const std::size_t at = std::min(name.find('@', 1), name.size());
    std::string_view version = name.substr(std::min(name.find_first_not_of('@', at), name.size()));
    if (version.empty()) version = versions.of(number, i);
    entries.push_back({.address = symbol.value + shift,
                       .size = symbol.size,
                       .symbol = name.substr(0, at),
                       .version = version,
                       .binding = symbol.binding,
                       .ifunc = symbol.type == STT_GNU_IFUNC});
  }
}

}  // namespace usdt::elf
