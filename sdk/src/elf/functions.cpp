// SPDX-License-Identifier: BSD-2-Clause
#include "elf/functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "arch/arch.hpp"
#include "elf/code_reader.hpp"
#include "elf/demangle.hpp"
#include "elf/elf_impl.hpp"
#include "elf/function_table.hpp"

namespace usdt::elf {
namespace {

constexpr std::size_t kMaxAliases = 8;
// Names are two to four times their symbols, which are a part of the file; they are demangled to be matched and to be
// shown.
constexpr std::uint64_t kDemangledPerByte = 8;
constexpr std::uint64_t kTextPerByte = 12;
constexpr std::uint64_t kText = 1 << 20;

/// Orders the symbols of one address, the best name first: the one that was asked for, one by which others can call it,
/// one that is not internal ("__libc_malloc").
auto rank(const FunctionEntry& entry) {
  const std::size_t underscores = std::min(entry.symbol.find_first_not_of('_'), entry.symbol.size());
  return std::tuple(!entry.wanted, entry.binding == STB_LOCAL, entry.binding == STB_WEAK, underscores, entry.symbol,
                    entry.version.empty());
}

std::uint64_t text_of(const Function& function) noexcept {
  std::uint64_t size = function.symbol.size() + function.name.size() + function.version.size();
  for (const std::string& alias : function.aliases) size += alias.size();
  return size;
}

/// Makes functions of the entries that are meant.
class Finder {
 public:
  Finder(const OpenedFile& main, FunctionTable& table, std::span<const FunctionName> names)
      : main_(main),
        table_(table),
        names_(names),
        demangler_(kText + kDemangledPerByte * table.stored),
        text_left_(kText + kTextPerByte * table.stored) {}

  /// Errors: malformed (names of more text than there is).
  [[nodiscard]] Result<std::vector<Function>> run();

 private:
  [[nodiscard]] bool is_wanted(const FunctionEntry& entry);
  void keep_wanted_addresses();
  [[nodiscard]] Function function_of(std::span<const FunctionEntry> entries);

  const OpenedFile& main_;
  FunctionTable& table_;
  std::span<const FunctionName> names_;
  Demangler demangler_;
  std::uint64_t text_left_;
};

bool Finder::is_wanted(const FunctionEntry& entry) {
  const auto is_named = [&](const FunctionName& name) { return name.matches_symbol(entry.symbol, entry.version); };
  if (std::ranges::any_of(names_, is_named)) return true;
  const auto may_be_named = [&](const FunctionName& name) { return name.may_match_mangled(entry.symbol); };
  if (!may_be_mangled(entry.symbol) || std::ranges::none_of(names_, may_be_named)) return false;
  const Demangled demangled = demangler_.demangle(entry.symbol);
  return std::ranges::any_of(names_, [&](const FunctionName& name) { return name.matches_demangled(demangled); });
}

/// Leaves the entries of addresses one of whose symbols is meant, in the order of their addresses.
void Finder::keep_wanted_addresses() {
  std::vector<std::uint64_t> wanted;
  for (FunctionEntry& entry : table_.entries) {
    if (table_.stopped()) return;
    entry.wanted = is_wanted(entry);
    if (entry.wanted) wanted.push_back(entry.address);
  }
  std::ranges::sort(wanted);
  std::erase_if(table_.entries,
                [&](const FunctionEntry& entry) { return !std::ranges::binary_search(wanted, entry.address); });
  std::ranges::sort(table_.entries, [](const FunctionEntry& a, const FunctionEntry& b) {
    return a.address != b.address ? a.address < b.address : rank(a) < rank(b);
  });
}

Function Finder::function_of(std::span<const FunctionEntry> entries) {
  const FunctionEntry& best = entries.front();
  Function function;
  function.symbol = best.symbol;
  const Demangled demangled = demangler_.demangle(best.symbol);
  function.name = demangled.name.empty() ? best.symbol : demangled.name;
  function.address = VirtAddr(best.address);
  function.local = true;
  for (const FunctionEntry& entry : entries) {
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

Result<std::vector<Function>> Finder::run() {
  keep_wanted_addresses();
  std::vector<Function> functions;
  CodeReader code(main_.file, main_.image);
  const std::span<const FunctionEntry> entries = table_.entries;
  for (std::size_t i = 0, end = 0; i < entries.size() && !table_.stopped(); i = end) {
    while (end < entries.size() && entries[end].address == entries[i].address) ++end;
    Function& function = functions.emplace_back(function_of(entries.subspan(i, end - i)));
    if (const std::uint64_t text = text_of(function); text <= text_left_) {
      text_left_ -= text;
    } else {
      return fail(ErrorKind::malformed, fmt::format("{}: its functions have names that are longer in all than the file",
                                                    main_.path.string()));
    }
    const Code there = code.at(function.address);
    function.offset = there.offset;
    function.bytes = there.bytes;
    function.site_class = there.site_class;
    function.landing_pad = arch::landing_pad(main_.image.machine, std::span(there.bytes.data).first(there.bytes.size));
  }
  return functions;
}

}  // namespace

Result<std::vector<Function>> find_functions(const ElfFile& file, std::span<const FunctionName> names,
                                             const StopToken& stop) {
  const OpenedFile& main = *Inside::of(file);
  if (file.kind() == ElfKind::relocatable || file.kind() == ElfKind::archive) {
    return fail(ErrorKind::not_supported,
                fmt::format("{}: its functions have no addresses before they are linked", main.path.string()));
  }
  FunctionTable table(main, stop);
  auto functions = Finder(main, table, names).run();
  if (table.stopped()) {
    return fail(ErrorKind::stopped, fmt::format("{}: its functions were not read to the end", main.path.string()));
  }
  return functions;
}

}  // namespace usdt::elf
