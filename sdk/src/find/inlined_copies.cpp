// SPDX-License-Identifier: BSD-2-Clause
#include "find/inlined_copies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "find/some_of.hpp"

namespace usdt::find {

const Result<elf::CodeWays>& InlinedCopies::ways_through(const dwarf::InstanceCode& code) {
  auto known = of_callers_.find(code.entry);
  if (known == of_callers_.end())
    known = of_callers_.emplace(code.entry, elf::CodeWays::of(elf_, code.entry, code.function)).first;
  return known->second;
}

bool InlinedCopies::is_of_other_code(const dwarf::Instance& instance) {
  const dwarf::InstanceCode code = dwarf::code_of(debug_, instance);
  const auto& ways = ways_through(code);
  return other_code_.contains(code.entry) || (ways && !ways->has_instruction(instance.pc));
}

void InlinedCopies::look_at(const dwarf::FunctionInfo& info) {
  std::vector<VirtAddr> begin;
  std::map<VirtAddr, elf::CopiesInside> copies;  // by caller
  const auto is_copy = [](const dwarf::Instance& one) { return one.inlined && one.part == dwarf::FunctionPart::whole; };
  for (const dwarf::Instance& one : info.instances)
    if (is_copy(one)) {
      begin.push_back(one.pc);
      dwarf::InstanceCode code = dwarf::code_of(debug_, one);
      copies[code.entry].code.push_back(std::move(code.copy));
    }
  if (begin.empty()) return;
  std::ranges::sort(begin);
  for (const dwarf::Instance& one : info.instances)
    if (is_copy(one) && is_of_other_code(one)) other_code_.insert(dwarf::code_of(debug_, one).entry);
  const auto those_in = [&begin](const std::vector<elf::CodeRange>& function) {
    std::vector<VirtAddr> there;
    for (const elf::CodeRange& range : function)
      there.insert(there.end(), std::ranges::lower_bound(begin, range.begin),
                   std::ranges::lower_bound(begin, range.end));
    return there;
  };
  for (const dwarf::Instance& one : info.instances) {
    if (!is_copy(one) || steps_ == 0 || stop_.stop_requested()) continue;
    const dwarf::InstanceCode code = dwarf::code_of(debug_, one);
    const auto& ways = ways_through(code);
    if (!ways || other_code_.contains(code.entry)) continue;
    elf::CopiesInside& beside = copies[code.entry];
    if (beside.marks.empty()) ways->mark_all(beside, steps_);
    const elf::CopyArrival found = ways->arrival(one.pc, code.copy, those_in(code.function), beside, steps_);
    if (found.all_come_by) meet_.emplace(one.die, *found.all_come_by);
    if (found.passed_by || found.left_early || found.joined) missed_.insert(info.qualified);
    if (found.rounds) rounds_.insert(info.qualified);
  }
  of_callers_.clear();
  if (dwarf::may_be_merged(debug_, info)) missed_.insert(info.qualified);
}

void InlinedCopies::look_at_part(const dwarf::FunctionInfo& info, const dwarf::Instance& part) {
  const auto has_whole = [&](const dwarf::Instance& one) {
    return one.inlined && one.part == dwarf::FunctionPart::whole && one.caller == part.caller;
  };
  if (part.inlined && part.part == dwarf::FunctionPart::split && part.caller != info.qualified &&
      std::ranges::none_of(info.instances, has_whole))
    missed_.insert(info.qualified);
}

std::optional<VirtAddr> InlinedCopies::meeting_of(const dwarf::Instance& instance) const {
  const auto there = meet_.find(instance.die);
  return there == meet_.end() ? std::nullopt : std::optional(there->second);
}

void InlinedCopies::warn(ProbeFile& file) const {
  if (!missed_.empty())
    file.warnings.push_back({{},
                             fmt::format("calls may be missed, or counted twice, of inlined copies of {}: the compiler "
                                         "made one of several ways through them, some of which leave the first "
                                         "instruction of a copy out, or only run that",
                                         some_of({missed_.begin(), missed_.end()}))});
  if (!rounds_.empty())
    file.warnings.push_back({{},
                             fmt::format("inlined copies of {} begin with a loop: a hit of them is a call or a round",
                                         some_of({rounds_.begin(), rounds_.end()}))});
  if (steps_ == 0)
    file.warnings.push_back(
        {{}, "not all inlined copies were looked at: of the others, calls may be missed (fewer names take less time)"});
}

void warn_of_coroutines(const std::vector<dwarf::FunctionInfo>& functions, ProbeFile& file) {
  std::vector<std::string> all;
  for (const dwarf::FunctionInfo& each : functions) {
    // (GCC's, which have no name for the linker, always keep what makes a coroutine.)
    if (each.linkage_name.empty()) continue;
    std::set<std::string> callers;
    for (const dwarf::Instance& one : each.instances)
      if (one.inlined && one.part == dwarf::FunctionPart::coroutine) callers.insert(one.caller);
    if (!callers.empty())
      all.push_back(fmt::format("{} (in {})", each.qualified, some_of({callers.begin(), callers.end()})));
  }
  if (!all.empty())
    file.warnings.push_back({{},
                             fmt::format("calls may be missed of {}: where the compiler knows all that a coroutine "
                                         "does, it may leave nothing of its call",
                                         some_of(std::move(all)))});
}

void warn_of_repeated(const dwarf::DebugInfo& debug, const std::vector<dwarf::FunctionInfo>& functions,
                      ProbeFile& file) {
  std::size_t copies = 0;
  std::vector<std::string> names;
  for (const dwarf::FunctionInfo& each : functions) {
    const auto repeated = std::ranges::count_if(
        each.instances, [&](const dwarf::Instance& one) { return dwarf::is_repeated(debug, each, one); });
    copies += static_cast<std::size_t>(repeated);
    if (repeated > 0) names.push_back(each.qualified);
  }
  if (names.empty()) return;
  file.warnings.push_back({{},
                           fmt::format("calls may be missed of {} inlined {} ({}) that the compiler may have "
                                       "repeated, as in a loop that it unrolled: debug information tells one place",
                                       copies, copies == 1 ? "copy" : "copies", some_of(std::move(names)))});
}

}  // namespace usdt::find
