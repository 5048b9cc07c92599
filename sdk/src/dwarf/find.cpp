// SPDX-License-Identifier: BSD-2-Clause
// Functions by address and by name.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/try.hpp"
#include "dwarf/compiler.hpp"
#include "dwarf/die.hpp"
#include "dwarf/impl.hpp"
#include "dwarf/index_cache.hpp"
#include "dwarf/lambdas.hpp"
#include "dwarf/parts.hpp"
#include "dwarf/types.hpp"

namespace usdt::dwarf {
namespace {

bool may_hold_code(int tag) {
  switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_subprogram:
    case DW_TAG_inlined_subroutine:
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
      return true;
    default:
      return false;
  }
}

/// What an entry with code is in.
struct Inside {
  std::optional<Dwarf_Die> function;  ///< the subprogram
  std::optional<Dwarf_Die> scope;     ///< that, or the instance inlined into it
};

/// Of a function that several units have the linker keeps one copy. GNU ld lets all of them describe that, where theirs
/// were of its size: only the first one's description is of its code.
class Owners {
 public:
  explicit Owners(const DebugInfo::Impl& impl) : impl_(impl) {}

  /// Whether `function` of `unit`, which units are asked for in their order, is what is at `entry`.
  bool owns(Dwarf_Die unit, Dwarf_Die function, VirtAddr entry) {
    if (dwarf_cu_getdwarf(unit.cu) == impl_.main.dwarf.get())
      if (const auto first = impl_.unit_in_aranges(entry))
        return *first == dwarf_dieoffset(&unit) - dwarf_cuoffset(&unit);
    std::string_view name = linkage_name_of(function);
    if (name.empty()) name = text(attribute(function, DW_AT_name));
    const auto [known, is_new] = known_.try_emplace(entry, Owner{unit.addr, name});
    return is_new || known->second.unit == unit.addr || known->second.name != name;
  }

 private:
  struct Owner {
    const void* unit;
    std::string_view name;
  };
  const DebugInfo::Impl& impl_;
  std::map<VirtAddr, Owner> known_;
};

/// Walks a unit for code: calls `visit(die, its entry, what it is in)` for each subprogram that has an entry and for
/// each inlined instance.
template <class Visit>
class CodeWalk {
 public:
  /// `owners`: leaves out what is another unit's; null: nothing.
  CodeWalk(const DebugInfo::Impl& impl, const StopToken& stop, Owners* owners, Visit visit)
      : impl_(impl), tree_(stop), owners_(owners), visit_(std::move(visit)) {}

  void walk_unit(Dwarf_Die unit) {
    unit_ = unit;
    walk(unit, {}, 0);
  }
  [[nodiscard]] bool in_circles() const noexcept { return tree_.in_circles(); }

 private:
  void walk(Dwarf_Die parent, const Inside& inside, unsigned depth) {
    if (depth == deepest_tree || done_) return;
    tree_.children(parent, [&](Dwarf_Die child) {
      const int tag = dwarf_tag(&child);
      if (may_hold_code(tag)) enter(child, tag, inside, depth);
      return !done_;
    });
  }

  void enter(Dwarf_Die child, int tag, Inside inside, unsigned depth) {
    if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine) {
      const auto entry = impl_.entry_of(child);
      // The linker leaves what it discarded at address 0 and the like; so is all that is in it.
      if (entry && !impl_.code.contains(*entry)) return;
      if (entry && owners_ != nullptr && tag == DW_TAG_subprogram && !owners_->owns(unit_, child, *entry)) return;
      if (entry && !visit_(child, *entry, inside)) {
        done_ = true;
        return;
      }
      inside.scope = child;
      if (tag == DW_TAG_subprogram) inside.function = child;
    }
    walk(child, inside, depth + 1);
  }

  const DebugInfo::Impl& impl_;
  TreeWalk tree_;
  Owners* owners_;
  Visit visit_;
  Dwarf_Die unit_ = {};
  bool done_ = false;
};

/// Collects functions and their instances over all units.
class Collector {
 public:
  Collector(const DebugInfo::Impl& impl, const DebugInfo::Wanted& wanted)
      : impl_(impl), wanted_(wanted), parts_(impl) {}

  void add(Dwarf_Die die, VirtAddr entry, const Inside& inside) {
    FunctionInfo* function = function_of(die);
    if (function == nullptr) return;
    const bool inlined = dwarf_tag(&die) == DW_TAG_inlined_subroutine;
    Instance& instance = function->instances.emplace_back();
    instance.pc = entry;
    instance.size = inlined ? 0 : code_size(die, entry, impl_.shared_reads);
    if (!inlined) instance.elsewhere = code_elsewhere(die, entry, impl_.shared_reads);
    instance.inlined = inlined;
    instance.die = impl_.id_of(die, inlined && inside.function ? *inside.function : die);
    if (inlined) {
      if (inside.function) instance.caller = impl_.names.qualified(*inside.function);
      instance.where_called = called_at(die);
    }
    instance.part = parts_.part_of(*function, instance, die, inside.scope);
  }

  [[nodiscard]] std::vector<FunctionInfo> take() && {
    for (FunctionInfo& each : functions_) parts_.finish(each);
    for (FunctionInfo& each : functions_) {
      const auto key = [](const Instance& one) {
        return std::tie(one.inlined, one.pc, one.caller, one.where_called.file, one.where_called.line);
      };
      std::ranges::stable_sort(each.instances, {}, key);
      // Of a function that several units have, the linker keeps one, and may let all of them describe it.
      const auto same = [key](const Instance& one, const Instance& other) { return key(one) == key(other); };
      each.instances.erase(std::unique(each.instances.begin(), each.instances.end(), same), each.instances.end());
    }
    return std::move(functions_);
  }

 private:
  static constexpr std::size_t unwanted = SIZE_MAX;

  FunctionInfo* function_of(Dwarf_Die die) {
    const Dwarf_Die origin = origin_of(die);
    const auto [at, is_new] = by_origin_.try_emplace(origin.addr, unwanted);
    if (is_new) {
      FunctionInfo info = impl_.describe(die);
      if (!info.name.empty() && wanted_(info)) at->second = number_of(std::move(info), die);
    }
    return at->second == unwanted ? nullptr : &functions_[at->second];
  }

  /// Each unit that includes a header has its functions again: they are one.
  std::size_t number_of(FunctionInfo info, Dwarf_Die die) {
    info.declared = impl_.place_of(die);
    const auto& called = info.linkage_name.empty() ? info.qualified : info.linkage_name;
    const auto [at, is_new] =
        by_source_.try_emplace(std::tuple(called, info.declared.file, info.declared.line), functions_.size());
    if (is_new) functions_.push_back(std::move(info));
    return at->second;
  }

  const DebugInfo::Impl& impl_;
  const DebugInfo::Wanted& wanted_;
  Parts parts_;
  std::vector<FunctionInfo> functions_;
  std::unordered_map<const void*, std::size_t> by_origin_;
  std::map<std::tuple<std::string, std::string, std::uint32_t>, std::size_t> by_source_;
};

}  // namespace

namespace {

/// Each unit as it is in its file, until `visit(unit, whether it has a type only)` returns false.
template <class Visit>
void for_each_unit_in(Dwarf* dwarf, Visit&& visit) {
  Dwarf_CU* unit = nullptr;
  Dwarf_Die die;
  std::uint8_t kind = 0;
  while (dwarf_get_units(dwarf, unit, &unit, nullptr, &kind, &die, nullptr) == 0)
    // Of a unit without any entry libdw hands out one that is of no unit (tests/fuzz).
    if (die.cu != nullptr && !visit(die, kind == DW_UT_type || kind == DW_UT_split_type)) return;
}

}  // namespace

void for_each_unit(Dwarf* dwarf, const SplitUnits& split, const std::function<bool(Dwarf_Die)>& visit) {
  for_each_unit_in(dwarf, [&](Dwarf_Die unit, bool is_type) { return is_type || visit(split.whole(unit)); });
}

void for_each_unit(Dwarf* dwarf, const SplitUnits& split, const UnitSet& units,
                   const std::function<bool(Dwarf_Die)>& visit) {
  for_each_unit_in(dwarf, [&](Dwarf_Die unit, bool is_type) {
    return is_type || !units.contains(dwarf_dieoffset(&unit) - dwarf_cuoffset(&unit)) || visit(split.whole(unit));
  });
}

void for_each_unit_and_type(Dwarf* dwarf, const SplitUnits& split, const std::function<bool(Dwarf_Die)>& visit) {
  for_each_unit_in(dwarf, [&](Dwarf_Die unit, bool) {
    const Dwarf_Die whole = split.whole(unit);
    if (whole.addr == unit.addr) return visit(unit);
    bool more = true;
    for_each_unit_in(dwarf_cu_getdwarf(whole.cu), [&](Dwarf_Die each, bool) { return more = visit(each); });
    return more;
  });
}

DieId DebugInfo::Impl::id_of(const Dwarf_Die& die, const Dwarf_Die& function) const {
  const auto [at, is_new] = die_ids.try_emplace(die.addr, static_cast<DieId>(dies.size()));
  if (is_new) dies.push_back({die, function});
  return at->second;
}

std::optional<KnownDie> DebugInfo::Impl::known(DieId id) const {
  const auto number = static_cast<std::size_t>(id);
  if (number >= dies.size()) return std::nullopt;
  return dies[number];
}

bool DebugInfo::Impl::tells_signature(Dwarf_Die function) const {
  const SignatureTold told = signature_told(function);
  if (told != SignatureTold::by_unit) return told == SignatureTold::yes;
  Dwarf_Die unit;
  Dwarf_Die declared = origin_of(function);
  if (dwarf_diecu(&declared, &unit, nullptr, nullptr) == nullptr) return true;
  const auto [known, fresh] = units_with_types.try_emplace(unit.addr, false);
  if (fresh) known->second = has_types(unit);
  return known->second;
}

bool DebugInfo::Impl::is_surely_unoptimised(Dwarf_Die function) const {
  if (!is_unoptimised(function)) return false;
  if (!is_rust(function)) return true;
  Dwarf_Die unit;
  if (dwarf_diecu(&function, &unit, nullptr, nullptr) == nullptr) return false;
  const auto [known, fresh] = unoptimised_units.try_emplace(unit.addr, false);
  if (fresh) known->second = looks_unoptimised(unit);
  return known->second;
}

TypeId DebugInfo::Impl::type_id(const std::optional<Dwarf_Die>& die, unsigned dimension, bool swapped) const {
  if (!die) return TypeId::none;
  const auto [at, is_new] =
      type_ids.try_emplace(std::tuple(die->addr, dimension, swapped), static_cast<TypeId>(types.size()));
  if (is_new) types.push_back({*die, dimension, swapped});
  return at->second;
}

const Frames& DebugInfo::Impl::frames() const {
  if (!call_frames) {
    auto own = debug_file ? open_elf(opened->file, opened->path) : DwarfFile{};
    if (own) code_file = std::move(*own);
    call_frames.emplace(debug_file ? code_file.elf.get() : main.elf.get(), main.dwarf.get(), arch);
  }
  return *call_frames;
}

std::optional<VirtAddr> DebugInfo::Impl::entry_of(Dwarf_Die die) const {
  return dwarf::entry_of(die, code_names(), shared_reads);
}

const CodeNames& DebugInfo::Impl::code_names() const {
  if (!symbols) symbols.emplace(*opened, debug_file);
  return *symbols;
}

Error DebugInfo::Impl::names_spent() const {
  return {ErrorKind::limit, fmt::format("{}: debug information whose names lead to the same units again and again: not "
                                        "read to the end",
                                        main.path.string())};
}

Result<void> DebugInfo::Impl::may_read_on() const {
  if (stop.stop_requested())
    return fail(ErrorKind::stopped, fmt::format("stopped while reading debug information of {}", main.path.string()));
  if (split.spent())
    return fail(ErrorKind::limit, fmt::format("{}: split debug information that comes to too much: not read to the end",
                                              main.path.string()));
  if (shared_reads.spent())
    return fail(ErrorKind::limit, fmt::format("{}: debug information whose functions lead to the same entries again "
                                              "and again: not read to the end",
                                              main.path.string()));
  return {};
}

FunctionInfo DebugInfo::Impl::describe(Dwarf_Die die) const {
  FunctionInfo info;
  info.name = text(attribute(die, DW_AT_name));
  info.linkage_name = text(attribute(die, DW_AT_linkage_name));
  if (info.linkage_name.empty()) info.linkage_name = text(attribute(die, DW_AT_MIPS_linkage_name));
  info.qualified = names.qualified(die);
  if (info.linkage_name.empty())
    if (std::string lambda = lambda_name(*this, die); !lambda.empty()) info.qualified = std::move(lambda);
  info.external = flag(attribute(die, DW_AT_external));
  info.noreturn = flag(attribute(die, DW_AT_noreturn));
  info.go = language_of(die) == Language::go;
  return info;
}

SourceLine DebugInfo::Impl::place_of(Dwarf_Die die) const {
  SourceLine declared = declared_at(die);
  if (!declared.file.empty()) return declared;
  const auto scope = names.scope_of(origin_of(die));
  return scope ? declared_at(*scope) : declared;
}

std::optional<std::uint64_t> DebugInfo::Impl::unit_in_aranges(VirtAddr pc) const {
  const SectionBytes aranges = main.sections().aranges;
  if (!sorted_aranges && searches_of_aranges++ < most_searches_of_aranges) return unit_by_aranges(aranges, pc.value);
  if (!sorted_aranges) sorted_aranges = dwarf::unit_ranges(aranges);
  return find_unit(*sorted_aranges, pc.value);
}

std::optional<Dwarf_Die> DebugInfo::Impl::unit_at(VirtAddr pc) const {
  Dwarf_Die unit;
  const auto listed = unit_in_aranges(pc);
  const auto head = listed ? unit_head(main.sections().info, *listed) : std::nullopt;
  if (head && dwarf_offdie(main.dwarf.get(), head->first_entry, &unit) != nullptr) return split.whole(unit);
  // Clang writes no .debug_aranges: the units themselves are asked.
  if (!unit_ranges) {
    unit_ranges.emplace();
    for_each_unit(main.dwarf.get(), split, [this](Dwarf_Die each) {
      add_ranges(each, shared_reads, *unit_ranges);
      return true;
    });
    std::ranges::stable_sort(*unit_ranges, {}, &DieRange::start);
  }
  return find_range(*unit_ranges, pc);
}

void add_ranges(Dwarf_Die die, Budget& budget, std::vector<DieRange>& all) {
  for_each_range(die, budget, [&](Dwarf_Addr begin, Dwarf_Addr end) {
    if (begin < end) all.push_back({begin, end, die});
    return true;
  });
}

std::optional<Dwarf_Die> find_range(const std::vector<DieRange>& all, VirtAddr pc) {
  const auto after = std::ranges::upper_bound(all, pc.value, {}, &DieRange::start);
  if (after == all.begin()) return std::nullopt;
  const auto first = std::ranges::lower_bound(all, std::prev(after)->start, {}, &DieRange::start);
  const auto found = std::find_if(first, after, [pc](const DieRange& range) { return pc.value < range.end; });
  return found == after ? std::nullopt : std::optional(found->die);
}

const std::vector<DieEntry>& DebugInfo::Impl::entries_of(Dwarf_Die unit) const {
  auto [known, is_new] = function_entries.try_emplace(unit.addr);
  std::vector<DieEntry>& entries = known->second;
  if (!is_new) return entries;
  CodeWalk walk(*this, stop, nullptr, [&](Dwarf_Die die, VirtAddr pc, const Inside&) {
    if (dwarf_tag(&die) == DW_TAG_subprogram) entries.push_back({pc, die});
    return true;
  });
  walk.walk_unit(unit);
  std::ranges::stable_sort(entries, {}, &DieEntry::pc);
  return entries;
}

Result<FunctionInfo> DebugInfo::function_at(VirtAddr entry, std::string_view symbol) const {
  const std::scoped_lock lock(impl_->mutex);
  const std::optional<Dwarf_Die> unit = impl_->unit_at(entry);
  const std::vector<DieEntry> none;
  const auto& entries = unit ? impl_->entries_of(*unit) : none;
  TRY(impl_->may_read_on());
  const auto first = std::ranges::lower_bound(entries, entry, {}, &DieEntry::pc);
  const auto last = std::ranges::upper_bound(entries, entry, {}, &DieEntry::pc);
  if (first == last)
    return fail(ErrorKind::not_found, fmt::format("the debug information in {} has no function that begins at {:#x}",
                                                  path().string(), entry.value));
  const auto called_so = [symbol](const DieEntry& each) { return linkage_name_of(each.die) == symbol; };
  auto found = std::find_if(first, last, called_so);
  if (found == last) found = first;
  FunctionInfo info = impl_->describe(found->die);
  info.declared = impl_->place_of(found->die);
  Instance& instance = info.instances.emplace_back();
  instance.pc = entry;
  instance.elsewhere = code_elsewhere(found->die, entry, impl_->shared_reads);
  instance.die = impl_->id_of(found->die, found->die);
  return info;
}

FunctionIndex DebugInfo::Impl::make_index(const DebugSections& sections, const StopToken& stop_looking,
                                          const FunctionIndex::LetGo& let_go, const NameFilter* filter) const {
  return {sections, [this](VirtAddr address) { return code.contains(address); }, stop_looking,
          let_go,   FunctionIndex::useful_threads(sections.info.size()),         filter};
}

/// Nothing: it was stopped.
std::optional<FunctionIndex> DebugInfo::Impl::find_index(const DebugSections& sections, const StopToken& stop_looking,
                                                         const FunctionIndex::LetGo& let_go) const {
  std::optional<IndexCache> cache;
  if (sections.info.size() >= IndexCache::smallest) {
    const elf::File& debug = debug_file ? debug_file->file : opened->file;
    cache.emplace(opened->file, debug, elf::build_id(opened->file, opened->image));
    if (auto known = cache->load()) return known;
  }
  FunctionIndex index = make_index(sections, stop_looking, let_go, nullptr);
  if (stop_looking.stop_requested()) return std::nullopt;
  if (cache) cache->save(index);
  return index;
}

UnitSet DebugInfo::Impl::units_with(const Wanted& wanted, const NameHint* hint, const StopToken& stop_looking) const {
  const DebugSections sections = main.sections();
  const auto let_go = [this] { main.bytes.let_go(); };
  FunctionInfo info;
  const auto is_wanted = [&](const FunctionNames& each) {
    info.name = each.name;
    info.linkage_name = each.linkage_name;
    info.qualified = each.qualified;
    return !info.name.empty() && wanted(info);
  };
  if (!function_index && hint != nullptr) {
    if (const auto filter = NameFilter::make(sections, *hint, stop_looking, let_go))
      return make_index(sections, stop_looking, let_go, &*filter).units(sections, is_wanted, stop_looking, let_go);
  }
  if (!function_index) {
    function_index = find_index(sections, stop_looking, let_go);
    if (!function_index) return {};
  }
  return function_index->units(sections, is_wanted, stop_looking, let_go);
}

UnitSet DebugInfo::Impl::units_naming(const NameHint& hint, const StopToken& stop_looking) const {
  const DebugSections sections = main.sections();
  const auto let_go = [this] { main.bytes.let_go(); };
  const auto filter = NameFilter::make(sections, hint, stop_looking, let_go);
  const FunctionIndex index(
      sections, [](VirtAddr) { return true; }, stop_looking, let_go,
      FunctionIndex::useful_threads(sections.info.size()), filter ? &*filter : nullptr);
  const auto is_wanted = [&](const FunctionNames& each) {
    return hint.may_be(each.linkage_name.empty() ? each.name : each.linkage_name);
  };
  return index.units(sections, is_wanted, stop_looking, let_go);
}

Result<std::vector<FunctionInfo>> DebugInfo::Impl::functions(const Wanted& wanted, const NameHint* hint,
                                                             const StopToken& stop_looking) const {
  Collector collector(*this, wanted);
  Owners owners(*this);
  bool circular = false;
  const auto stopped = [&] { return stop_looking.stop_requested() || stop.stop_requested(); };
  for_each_unit(main.dwarf.get(), split, units_with(wanted, hint, stop_looking), [&](Dwarf_Die unit) {
    CodeWalk walk(*this, stop_looking, &owners, [&](Dwarf_Die die, VirtAddr pc, const Inside& inside) {
      collector.add(die, pc, inside);
      return !names.spent() && may_read_on().has_value();
    });
    walk.walk_unit(unit);
    circular = walk.in_circles();
    return !circular && !names.spent() && !shared_reads.spent() && !stopped();
  });
  if (stopped())
    return fail(ErrorKind::stopped, fmt::format("stopped while reading debug information of {}", main.path.string()));
  if (names.spent()) return fail(names_spent());
  TRY(may_read_on());
  if (circular)
    return fail(ErrorKind::malformed, fmt::format("{}: debug information leads in circles", main.path.string()));
  return std::move(collector).take();
}

Result<std::vector<FunctionInfo>> DebugInfo::functions(const Wanted& wanted, const StopToken& stop) const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->functions(wanted, nullptr, stop);
}

Result<std::vector<FunctionInfo>> DebugInfo::functions(const Wanted& wanted, const NameHint& hint,
                                                       const StopToken& stop) const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->functions(wanted, &hint, stop);
}

DebugInfo::Code DebugInfo::code_of(const Instance& instance) const {
  const std::scoped_lock lock(impl_->mutex);
  const auto known = impl_->known(instance.die);
  if (!known) return {};
  const auto ranges_of = [this](Dwarf_Die die) {
    std::vector<elf::CodeRange> ranges;
    for_each_range(die, impl_->shared_reads, [&](Dwarf_Addr begin, Dwarf_Addr end) {
      if (begin < end) ranges.push_back({VirtAddr(begin), VirtAddr(end)});
      return true;
    });
    return ranges;
  };
  return {.entry = impl_->entry_of(known->function).value_or(VirtAddr()),
          .function = ranges_of(known->function),
          .copy = ranges_of(known->die)};
}

std::string DebugInfo::missing() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->split.missing();
}

Result<std::vector<FunctionInfo>> DebugInfo::functions_named(std::string_view name, const StopToken& stop) const {
  // What a function is declared as may be the end of its qualified name.
  const std::size_t last = name.rfind("::");
  const NameHint hint{.words = {std::string(last == name.npos ? name : name.substr(last + 2))},
                      .may_be = [name](std::string_view each) { return name.ends_with(each); }};
  return functions(
      [name](const FunctionInfo& each) {
        return each.name == name || each.linkage_name == name || each.qualified == name;
      },
      hint, stop);
}

}  // namespace usdt::dwarf
