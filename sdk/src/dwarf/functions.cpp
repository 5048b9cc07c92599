// SPDX-License-Identifier: BSD-2-Clause
// Functions by address and by name.
#include "dwarf/functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/try.hpp"
#include "dwarf/code_walk.hpp"
#include "dwarf/debug_state.hpp"
#include "dwarf/describe.hpp"
#include "dwarf/die.hpp"
#include "dwarf/parts.hpp"

namespace usdt::dwarf {
namespace {

/// Collects functions and their instances over all units.
class Collector {
 public:
  Collector(DebugState& state, const WantedFunction& wanted) : state_(state), wanted_(wanted), parts_(state) {}

  void add(Dwarf_Die die, VirtAddr entry, const Inside& inside) {
    FunctionInfo* function = function_of(die);
    if (function == nullptr) return;
    const bool inlined = dwarf_tag(&die) == DW_TAG_inlined_subroutine;
    Instance& instance = function->instances.emplace_back();
    instance.pc = entry;
    instance.size = inlined ? 0 : code_size(die, entry, state_.shared_reads);
    if (!inlined) instance.elsewhere = code_elsewhere(die, entry, state_.shared_reads);
    instance.inlined = inlined;
    instance.die = state_.dies.id_of(die, inlined && inside.function ? *inside.function : die);
    if (inlined) {
      if (inside.function) instance.caller = state_.names.qualified(*inside.function);
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
      // The linker keeps one copy of a function that several units have, and may let all of them describe it.
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
      FunctionInfo info = describe(state_, die);
      if (!info.name.empty() && wanted_(info)) at->second = number_of(std::move(info), die);
    }
    return at->second == unwanted ? nullptr : &functions_[at->second];
  }

  /// Each unit that includes a header has its functions again: they are one.
  std::size_t number_of(FunctionInfo info, Dwarf_Die die) {
    info.declared = place_of(state_, die);
    const auto& called = info.linkage_name.empty() ? info.qualified : info.linkage_name;
    const auto [at, is_new] =
        by_source_.try_emplace(std::tuple(called, info.declared.file, info.declared.line), functions_.size());
    if (is_new) functions_.push_back(std::move(info));
    return at->second;
  }

  DebugState& state_;
  const WantedFunction& wanted_;
  Parts parts_;
  std::vector<FunctionInfo> functions_;
  std::unordered_map<const void*, std::size_t> by_origin_;
  std::map<std::tuple<std::string, std::string, std::uint32_t>, std::size_t> by_source_;
};

/// `hint`: null where nothing is known of the state.names.
Result<std::vector<FunctionInfo>> collect(const DebugInfo& info, const WantedFunction& wanted, const NameHint* hint,
                                          const StopToken& stop) {
  DebugState& state = *info.state();
  const std::scoped_lock lock(state.mutex);
  Collector collector(state, wanted);
  Owners owners(state);
  bool circular = false;
  const auto stopped = [&] { return stop.stop_requested() || state.stop.stop_requested(); };
  for_each_unit(state.files.main.dwarf.get(), state.files.split, state.function_units.with(wanted, hint, stop),
                [&](Dwarf_Die unit) {
                  CodeWalk walk(state, stop, &owners, [&](Dwarf_Die die, VirtAddr pc, const Inside& inside) {
                    collector.add(die, pc, inside);
                    return !state.names.spent() && state.may_read_on().has_value();
                  });
                  walk.walk_unit(unit);
                  circular = walk.in_circles();
                  return !circular && !state.names.spent() && !state.shared_reads.spent() && !stopped();
                });
  if (stopped())
    return fail(ErrorKind::stopped, fmt::format("stopped while reading debug information of {}", info.path().string()));
  if (state.names.spent()) return fail(state.names_spent());
  TRY(state.may_read_on());
  if (circular)
    return fail(ErrorKind::malformed, fmt::format("{}: debug information leads in circles", info.path().string()));
  return std::move(collector).take();
}

}  // namespace

Result<FunctionInfo> function_at(const DebugInfo& info, VirtAddr entry, std::string_view symbol) {
  DebugState& state = *info.state();
  const std::scoped_lock lock(state.mutex);
  const std::optional<Dwarf_Die> unit = state.units.unit_at(entry);
  const std::vector<DieEntry> none;
  const auto& entries = unit ? entries_of(state, *unit) : none;
  TRY(state.may_read_on());
  const auto first = std::ranges::lower_bound(entries, entry, {}, &DieEntry::pc);
  const auto last = std::ranges::upper_bound(entries, entry, {}, &DieEntry::pc);
  if (first == last)
    return fail(ErrorKind::not_found, fmt::format("the debug information in {} has no function that begins at {:#x}",
                                                  info.path().string(), entry.value));
  const auto called_so = [symbol](const DieEntry& each) { return linkage_name_of(each.die) == symbol; };
  auto found = std::find_if(first, last, called_so);
  if (found == last) found = first;
  FunctionInfo function = describe(state, found->die);
  function.declared = place_of(state, found->die);
  Instance& instance = function.instances.emplace_back();
  instance.pc = entry;
  instance.elsewhere = code_elsewhere(found->die, entry, state.shared_reads);
  instance.die = state.dies.id_of(found->die, found->die);
  return function;
}

Result<std::vector<FunctionInfo>> find_functions(const DebugInfo& info, const WantedFunction& wanted,
                                                 const StopToken& stop) {
  return collect(info, wanted, nullptr, stop);
}

Result<std::vector<FunctionInfo>> find_functions(const DebugInfo& info, const WantedFunction& wanted,
                                                 const NameHint& hint, const StopToken& stop) {
  return collect(info, wanted, &hint, stop);
}

Result<std::vector<FunctionInfo>> functions_named(const DebugInfo& info, std::string_view name, const StopToken& stop) {
  // The declared name of a function may be the end of its qualified name.
  const std::size_t last = name.rfind("::");
  const NameHint hint{.words = {std::string(last == name.npos ? name : name.substr(last + 2))},
                      .may_be = [name](std::string_view each) { return name.ends_with(each); }};
  return find_functions(
      info,
      [name](const FunctionInfo& each) {
        return each.name == name || each.linkage_name == name || each.qualified == name;
      },
      hint, stop);
}

}  // namespace usdt::dwarf
