// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/go_types.hpp"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "dwarf/die.hpp"
#include "dwarf/types.hpp"
#include "elf/symbol_tables.hpp"

namespace usdt::dwarf {
namespace {

constexpr unsigned kAtGoRuntimeType = 0x2904;
/// Types that are looked at, and those of one list.
constexpr std::size_t kMostGoTypes = 1U << 20;
constexpr std::size_t kMostGoListed = 512;

/// The address where run-time types begin.
std::optional<std::uint64_t> runtime_types_of(const elf::File& file, const elf::Image& image) {
  elf::SymbolTables tables(file, image);
  for (std::uint32_t i = 0; i < image.sections.size(); ++i) {
    if (image.sections[i].type != SHT_SYMTAB) continue;
    const elf::SymbolTable& table = tables.at(i);
    for (std::size_t n = 0; n < table.size(); ++n)
      if (const elf::Symbol symbol = table[n]; table.name_of(symbol) == "runtime.types") return symbol.value;
  }
  return std::nullopt;
}

/// "*main.Mine" of "main.(*Mine).Error", "main.Code" of "main.Code.Error"; empty: it is no such method.
std::string receiver_of(std::string_view method) {
  constexpr std::string_view name = ".Error";
  if (!method.ends_with(name)) return {};
  method.remove_suffix(name.size());
  const std::size_t open = method.rfind("(*");
  if (open == method.npos || !method.ends_with(')')) return std::string(method);
  return "*" + std::string(method.substr(0, open)) + std::string(method.substr(open + 2, method.size() - open - 3));
}

/// The order of a list that may be cut: what programs put into interfaces most often, then their own types.
unsigned rank_of(std::string_view name) {
  constexpr std::string_view known[] = {"*errors.errorString", "*fmt.wrapError", "string", "int", "bool", "float64"};
  if (std::ranges::find(known, name) != std::end(known)) return 0;
  if (name.starts_with("main.") || name.starts_with("*main.")) return 1;
  return name.find_first_of(".[({ ") == name.npos ? 2 : 3;
}

void shorten(std::vector<GoType>& types) {
  std::ranges::stable_sort(types, {}, [](const GoType& each) { return rank_of(each.name); });
  types.resize(std::min(types.size(), kMostGoListed));
}

/// Goes through the units of a program.
class GoTypeReader {
 public:
  GoTypeReader(std::uint64_t base, const StopToken& stop) : base_(base), stop_(stop) {}

  /// False: enough was seen.
  bool add_unit(Dwarf_Die unit) {
    if (language_of(unit) != Language::go) return true;
    TreeWalk tree(stop_);
    tree.children(unit, [this](Dwarf_Die child) {
      if (dwarf_tag(&child) == DW_TAG_subprogram) add_method(name_of(child));
      add_type(child);
      return all_.size() < kMostGoTypes;
    });
    return all_.size() < kMostGoTypes && !tree.in_circles();
  }

  GoTypes take() && {
    GoTypes found;
    for (const GoType& each : all_) {
      // A pointer has the methods of what it points to.
      std::string_view behind = each.name;
      if (behind.starts_with('*')) behind.remove_prefix(1);
      if (with_error_.contains(std::string(each.name)) || with_error_.contains(std::string(behind)))
        found.errors.push_back(each);
    }
    found.all = std::move(all_);
    shorten(found.all);
    shorten(found.errors);
    return found;
  }

 private:
  void add_method(std::string_view name) {
    if (with_error_.size() >= kMostGoTypes) return;
    if (std::string receiver = receiver_of(name); !receiver.empty()) with_error_.insert(std::move(receiver));
  }

  void add_type(Dwarf_Die die) {
    const auto distance = own_attribute(die, kAtGoRuntimeType);
    Dwarf_Addr as_address = 0;
    auto told = distance ? constant(*distance) : std::nullopt;
    if (auto at = distance; at && !told && dwarf_formaddr(&*at, &as_address) == 0) told = as_address;
    const std::string_view name = name_of(die);
    if (!told || *told == 0 || name.empty()) return;
    if (seen_.insert(*told).second) all_.push_back({name, die, base_ + *told});
  }

  std::uint64_t base_;
  StopToken stop_;
  std::vector<GoType> all_;
  std::unordered_set<std::uint64_t> seen_;
  std::unordered_set<std::string> with_error_;
};

}  // namespace

Result<GoTypes> read_go_types(DebugState& state) {
  const elf::Image& image = state.files.opened->image;
  if (image.type != ET_EXEC)
    return fail(ErrorKind::not_supported, "addresses of a position-independent program are known only at run time");
  auto base = runtime_types_of(state.files.opened->file, image);
  if (!base && state.files.debug_file)
    base = runtime_types_of(state.files.debug_file->file, state.files.debug_file->image);
  if (!base) return fail(ErrorKind::not_supported, "no symbol runtime.types tells where run-time types are");
  const auto stopped = [&state] {
    return state.stop.stop_requested() || state.files.opened->options.stop.stop_requested();
  };
  GoTypeReader reader(*base, state.stop);
  for_each_unit_and_type(state.files.main.dwarf.get(), state.files.split,
                         [&](Dwarf_Die unit) { return !stopped() && reader.add_unit(unit); });
  if (stopped()) return fail(ErrorKind::stopped, "stopped while reading types");
  return std::move(reader).take();
}

}  // namespace usdt::dwarf
