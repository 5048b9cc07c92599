// SPDX-License-Identifier: BSD-2-Clause
#include "elf/functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "arch/arch.hpp"
#include "elf/code_reader.hpp"
#include "elf/demangle.hpp"
#include "elf/elf_impl.hpp"
#include "elf/symbol_versions.hpp"

namespace usdt::elf {
namespace {

constexpr std::size_t kMaxAliases = 8;
// Names are two to four times their symbols.
constexpr std::size_t kDemangledPerByte = 32;
constexpr std::size_t kStopInterval = 1024;

/// A function's entry in a symbol table. The strings are the table's.
struct Entry {
  std::uint64_t address;
  std::uint64_t size;
  std::string_view symbol;
  std::string_view version;
  std::uint8_t binding;
  bool ifunc;
  bool wanted;
};

bool is_function(const Symbol& symbol) noexcept {
  return (symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC) && symbol.section != SHN_UNDEF &&
         symbol.section != SHN_ABS;
}

/// What makes one symbol of an address the better name for it, best first: that it was asked for, that others can call
/// it by this name, that it is not an internal one ("__libc_malloc").
auto rank(const Entry& entry) {
  const std::size_t underscores = std::min(entry.symbol.find_first_not_of('_'), entry.symbol.size());
  return std::tuple(!entry.wanted, entry.binding == STB_LOCAL, entry.binding == STB_WEAK, underscores, entry.symbol,
                    entry.version.empty());
}

/// Reads symbol tables, and keeps the entries of functions that are meant.
class Finder {
 public:
  Finder(const OpenedFile& main, std::span<const FunctionName> names, const StopToken& stop)
      : main_(main), names_(names), stop_(stop), demangler_(kDemangledPerByte * main.file.stored()) {}

  void read(const File& file, const Image& image, std::uint64_t shift);
  [[nodiscard]] std::vector<Function> functions();
  [[nodiscard]] bool stopped() const noexcept { return stop_.stop_requested() || main_.options.stop.stop_requested(); }

 private:
  void read_table(const SymbolTable& table, std::uint32_t number, const SymbolVersions& versions, std::uint64_t shift);
  [[nodiscard]] bool is_wanted(const Entry& entry);
  void keep_wanted_addresses();
  [[nodiscard]] Function function_of(std::span<Entry> entries);

  const OpenedFile& main_;
  std::span<const FunctionName> names_;
  const StopToken& stop_;
  Demangler demangler_;
  std::vector<Entry> entries_;
  std::vector<std::shared_ptr<StringTable>> strings_;
  std::vector<SymbolVersions> versions_;  ///< own strings too
};

void Finder::read(const File& file, const Image& image, std::uint64_t shift) {
  SymbolTables tables(file, image);
  const SymbolVersions& versions = versions_.emplace_back(file, image, tables);
  for (std::uint32_t i = 0; i < image.sections.size() && !stopped(); ++i) {
    const std::uint32_t type = image.sections[i].type;
    if (type == SHT_SYMTAB || type == SHT_DYNSYM) read_table(tables.at(i), i, versions, shift);
  }
}

void Finder::read_table(const SymbolTable& table, std::uint32_t number, const SymbolVersions& versions,
                        std::uint64_t shift) {
  if (table.size() == 0 || table.strings() == nullptr) return;
  strings_.push_back(table.strings());
  for (std::size_t i = 1; i < table.size(); ++i) {
    if (i % kStopInterval == 0 && stopped()) return;
    const Symbol symbol = table[i];
    if (!is_function(symbol)) continue;
    const std::string_view name = table.full_name_of(symbol);
    if (name.empty()) continue;
    const std::size_t at = std::min(name.find('@', 1), name.size());
    Entry entry{.address = symbol.value + shift,
                .size = symbol.size,
                .symbol = name.substr(0, at),
                .version = name.substr(std::min(name.find_first_not_of('@', at), name.size())),
                .binding = symbol.binding,
                .ifunc = symbol.type == STT_GNU_IFUNC,
                .wanted = false};
    if (entry.version.empty()) entry.version = versions.of(number, i);
    entry.wanted = is_wanted(entry);
    entries_.push_back(entry);
  }
}

bool Finder::is_wanted(const Entry& entry) {
  if (std::ranges::any_of(names_,
                          [&](const FunctionName& name) { return name.matches_symbol(entry.symbol, entry.version); })) {
    return true;
  }
  if (!may_be_mangled(entry.symbol)) return false;
  const auto may_match = [&](const FunctionName& name) { return name.may_match_mangled(entry.symbol); };
  if (std::ranges::none_of(names_, may_match)) return false;
  const Demangled demangled = demangler_.demangle(entry.symbol);
  return std::ranges::any_of(names_, [&](const FunctionName& name) { return name.matches_demangled(demangled); });
}

/// Leaves the entries of addresses one of whose symbols is meant, in the order of their addresses.
void Finder::keep_wanted_addresses() {
  std::vector<std::uint64_t> wanted;
  for (const Entry& entry : entries_) {
    if (entry.wanted) wanted.push_back(entry.address);
  }
  std::ranges::sort(wanted);
  std::erase_if(entries_, [&](const Entry& entry) { return !std::ranges::binary_search(wanted, entry.address); });
  std::ranges::sort(entries_, {}, [](const Entry& entry) { return std::tuple(entry.address, rank(entry)); });
}

Function Finder::function_of(std::span<Entry> entries) {
  const Entry& best = entries.front();
  Function function;
  function.symbol = best.symbol;
  function.address = VirtAddr(best.address);
  const Demangled demangled = demangler_.demangle(best.symbol);
  function.name = demangled.name.empty() ? best.symbol : demangled.name;
  function.local = true;
  for (const Entry& entry : entries) {
    function.size = std::max(function.size, entry.size);
    function.local &= entry.binding == STB_LOCAL;
    function.ifunc |= entry.ifunc;
    if (entry.symbol == best.symbol) {
      if (function.version.empty()) function.version = entry.version;
    } else if (function.aliases.size() < kMaxAliases &&
               (function.aliases.empty() || function.aliases.back() != entry.symbol)) {
      function.aliases.emplace_back(entry.symbol);
    }
  }
  return function;
}

std::vector<Function> Finder::functions() {
  keep_wanted_addresses();
  std::vector<Function> functions;
  CodeReader code(main_.file, main_.image);
  for (std::size_t i = 0, end = 0; i < entries_.size() && !stopped(); i = end) {
    while (end < entries_.size() && entries_[end].address == entries_[i].address) ++end;
    Function& function = functions.emplace_back(function_of(std::span(entries_).subspan(i, end - i)));
    const Code there = code.at(function.address);
    function.offset = there.offset;
    function.bytes = there.bytes;
    function.site_class = there.site_class;
    function.landing_pad = arch::landing_pad(main_.image.machine, std::span(there.bytes.data).first(there.bytes.size));
  }
  return functions;
}

bool has_symtab(const Image& image) noexcept {
  return std::ranges::any_of(image.sections, [](const Section& section) { return section.type == SHT_SYMTAB; });
}

}  // namespace

Result<std::vector<Function>> find_functions(const ElfFile& file, std::span<const FunctionName> names,
                                             const StopToken& stop) {
  const OpenedFile& main = *file.impl().opened;
  if (file.kind() == ElfKind::relocatable || file.kind() == ElfKind::archive) {
    return fail(ErrorKind::not_supported,
                fmt::format("{}: its functions have no addresses before they are linked", main.path.string()));
  }
  Finder finder(main, names, stop);
  finder.read(main.file, main.image, 0);
  if (!has_symtab(main.image)) {
    if (const auto debug = find_debug_file(main)) {
      finder.read(debug->file, debug->image, shift_between(debug->image, main.image));
    }
  }
  std::vector<Function> functions = finder.functions();
  if (finder.stopped()) {
    return fail(ErrorKind::stopped, fmt::format("{}: its functions were not read to the end", main.path.string()));
  }
  return functions;
}

}  // namespace usdt::elf
