// SPDX-License-Identifier: BSD-2-Clause
// Whether each call of an inlined copy comes by its first instruction, and nothing else does.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "find/function_finder.hpp"
#include "find/some_of.hpp"

namespace usdt::find {

const Result<elf::CodeWays>& FunctionFinder::ways_through(const dwarf::InstanceCode& code) {
  auto known = ways_.of_callers.find(code.entry);
  if (known == ways_.of_callers.end())
    known = ways_.of_callers.emplace(code.entry, elf::CodeWays::of(*file_.elf, code.entry, code.function)).first;
  return known->second;
}

bool FunctionFinder::is_of_other_code(const dwarf::Instance& instance) {
  const dwarf::InstanceCode code = dwarf::code_of(*debug_, instance);
  const auto& ways = ways_through(code);
  return ways_.other_code.contains(code.entry) || (ways && !ways->has_instruction(instance.pc));
}

void FunctionFinder::look_at_ways(const dwarf::FunctionInfo& info) {
  if (go_ || std::ranges::none_of(patterns_, &FunctionPattern::inlined)) return;
  std::vector<VirtAddr> begin;
  std::map<VirtAddr, elf::CopiesInside> copies;  // by caller
  const auto is_copy = [](const dwarf::Instance& one) { return one.inlined && one.part == dwarf::FunctionPart::whole; };
  for (const dwarf::Instance& one : info.instances)
    if (is_copy(one)) {
      begin.push_back(one.pc);
      dwarf::InstanceCode code = dwarf::code_of(*debug_, one);
      copies[code.entry].code.push_back(std::move(code.copy));
    }
  if (begin.empty()) return;
  std::ranges::sort(begin);
  for (const dwarf::Instance& one : info.instances)
    if (is_copy(one) && is_of_other_code(one)) ways_.other_code.insert(dwarf::code_of(*debug_, one).entry);
  const auto those_in = [&begin](const std::vector<elf::CodeRange>& function) {
    std::vector<VirtAddr> there;
    for (const elf::CodeRange& range : function)
      there.insert(there.end(), std::ranges::lower_bound(begin, range.begin),
                   std::ranges::lower_bound(begin, range.end));
    return there;
  };
  for (const dwarf::Instance& one : info.instances) {
    if (!is_copy(one) || ways_.steps == 0 || stop_.stop_requested()) continue;
    const dwarf::InstanceCode code = dwarf::code_of(*debug_, one);
    const auto& ways = ways_through(code);
    if (!ways || ways_.other_code.contains(code.entry)) continue;
    elf::CopiesInside& beside = copies[code.entry];
    if (beside.marks.empty()) ways->mark_all(beside, ways_.steps);
    const elf::CopyArrival found = ways->arrival(one.pc, code.copy, those_in(code.function), beside, ways_.steps);
    if (found.all_come_by) ways_.meet.emplace(one.die, *found.all_come_by);
    if (found.passed_by || found.left_early || found.joined) ways_.missed.insert(info.qualified);
    if (found.rounds) ways_.rounds.insert(info.qualified);
  }
  ways_.of_callers.clear();
  if (dwarf::may_be_merged(*debug_, info)) ways_.missed.insert(info.qualified);
}

void FunctionFinder::look_at_part(const dwarf::FunctionInfo& info, const dwarf::Instance& part) {
  const auto has_whole = [&](const dwarf::Instance& one) {
    return one.inlined && one.part == dwarf::FunctionPart::whole && one.caller == part.caller;
  };
  if (part.inlined && part.part == dwarf::FunctionPart::split && part.caller != info.qualified &&
      std::ranges::none_of(info.instances, has_whole))
    ways_.missed.insert(info.qualified);
}

void FunctionFinder::come_by_all_ways(FunctionPoint& point, const dwarf::Instance& instance) {
  const auto there = ways_.meet.find(instance.die);
  if (there == ways_.meet.end() || !point.refused.empty()) return;
  place(point, there->second);
  // What debug information says of the copy's beginning may no longer hold there.
  point.signature = nothing();
}

void FunctionFinder::warn_of_ways() {
  if (!ways_.missed.empty())
    file_.warnings.push_back(
        {{},
         fmt::format("calls may be missed, or counted twice, of inlined copies of {}: the compiler "
                     "made one of several ways through them, some of which leave the first "
                     "instruction of a copy out, or only run that",
                     some_of({ways_.missed.begin(), ways_.missed.end()}))});
  if (!ways_.rounds.empty())
    file_.warnings.push_back({{},
                              fmt::format("inlined copies of {} begin with a loop: a hit of them is a call or a round",
                                          some_of({ways_.rounds.begin(), ways_.rounds.end()}))});
  if (ways_.steps == 0)
    file_.warnings.push_back(
        {{}, "not all inlined copies were looked at: of the others, calls may be missed (fewer names take less time)"});
}

}  // namespace usdt::find
