// SPDX-License-Identifier: BSD-2-Clause
#include "elf/code_ways.hpp"

#include <algorithm>

#include "elf/elf_impl.hpp"

namespace usdt::elf {
namespace {

bool leads_on(const arch::Instruction& code) { return code.flow != arch::Flow::jump && code.flow != arch::Flow::ret; }

}  // namespace

Result<CodeWays> CodeWays::of(const ElfFile& file, VirtAddr entry, std::span<const CodeRange> ranges) {
  if (!arch::knows_instructions(file.machine()))
    return fail(ErrorKind::not_supported, "this build of the library cannot tell x86 instructions apart");
  const OpenedFile& opened = *Inside::of(file);
  CodeWays ways;
  for (const CodeRange& range : ranges) {
    const auto offset = code_offset(opened.image, range.begin);
    if (!offset) return fail(ErrorKind::not_supported, "its code is not in this file");
    const std::uint64_t size =
        std::min(range.end.value - range.begin.value, code_bytes_from(opened.image, range.begin));
    const Bytes bytes = opened.file.bytes(offset->value, size);
    for (std::uint64_t at = 0; at < bytes.size();) {
      const auto code = arch::decode_instruction(file.machine(), ByteView(bytes).subspan(at));
      if (code.size == 0) return fail(ErrorKind::malformed, "not all of its code is instructions");
      ways.steps_.push_back({range.begin + at, code});
      at += code.size;
    }
  }
  std::ranges::sort(ways.steps_, {}, &Step::at);
  for (Step& each : ways.steps_) {
    if (leads_on(each.code)) each.behind = ways.number_of(each.at + each.code.size);
    const bool jumps = each.code.flow == arch::Flow::jump || each.code.flow == arch::Flow::branch;
    if (jumps && each.code.target)
      each.target = ways.number_of(each.at + static_cast<std::uint64_t>(*each.code.target));
  }
  ways.entry_ = ways.number_of(entry);
  return ways;
}

std::size_t CodeWays::number_of(VirtAddr at) const {
  const auto found = std::ranges::lower_bound(steps_, at, {}, &Step::at);
  return found != steps_.end() && found->at == at ? static_cast<std::size_t>(found - steps_.begin()) : nowhere;
}

CodeWays::Marks CodeWays::marks_of(std::span<const CodeRange> copy, std::uint64_t& steps) const {
  Marks marks(steps_.size());
  mark(copy, marks, steps);
  return marks;
}

void CodeWays::mark(std::span<const CodeRange> copy, Marks& marks, std::uint64_t& steps) const {
  for (const CodeRange& range : copy)
    for (auto at = std::ranges::lower_bound(steps_, range.begin, {}, &Step::at);
         at != steps_.end() && at->at < range.end && steps != 0; ++at, --steps)
      marks[static_cast<std::size_t>(at - steps_.begin())] = true;
}

void CodeWays::mark_all(CopiesInside& copies, std::uint64_t& steps) const {
  copies.marks.assign(steps_.size(), false);
  for (const std::vector<CodeRange>& each : copies.code) mark(each, copies.marks, steps);
}

void CodeWays::go(std::size_t from, const Marks& gates, Marks& seen, std::uint64_t& steps) const {
  std::vector<std::size_t> ahead{from};
  while (!ahead.empty() && steps != 0) {
    const std::size_t at = ahead.back();
    ahead.pop_back();
    if (at == nowhere || gates[at] || seen[at]) continue;
    --steps;
    seen[at] = true;
    ahead.push_back(steps_[at].target);
    ahead.push_back(steps_[at].behind);
  }
}

CodeWays::Marks CodeWays::come_to(const Marks& copy, const Marks& gates, std::uint64_t& steps) const {
  const Marks no_gates(steps_.size());
  Marks seen(steps_.size());   // without the gates
  Marks known(steps_.size());  // with them
  go(entry_, gates, seen, steps);
  go(entry_, no_gates, known, steps);
  // Instructions that no way leads to are where a switch, or an exception, goes on; the copy's own stay unknown.
  for (std::size_t i = 0; i < steps_.size() && steps != 0; ++i) {
    if (known[i]) continue;
    if (!copy[i]) go(i, gates, seen, steps);
    go(i, no_gates, known, steps);
  }
  return seen;
}

std::optional<std::size_t> CodeWays::where_ways_meet(std::size_t first, const Marks& copy, const Marks& seen,
                                                     Marks gates, std::uint64_t& steps) const {
  gates[first] = false;
  Marks before = copy;
  for (std::size_t at = first; at != nowhere && copy[at]; at = steps_[at].behind) {
    if (seen[at]) {
      const bool comes_back = steps_[at].code.repeats || std::ranges::any_of(steps_, [&](const Step& each) {
                                return each.target == at && copy[static_cast<std::size_t>(&each - steps_.data())];
                              });
      gates[at] = true;
      const Marks left = come_to(copy, gates, steps);
      for (std::size_t i = 0; i < left.size(); ++i)
        if (left[i] && before[i]) return std::nullopt;
      return comes_back || steps == 0 ? std::nullopt : std::optional(at);
    }
    if (steps_[at].code.flow != arch::Flow::next) return std::nullopt;
    before[at] = false;
  }
  return std::nullopt;
}

bool CodeWays::leaves_early(std::size_t first, const Marks& copy, const Marks& copies, const Marks& gates,
                            std::uint64_t& steps) const {
  std::size_t at = first;
  const auto goes_on = [&] {
    const arch::Flow flow = steps_[at].code.flow;
    return flow == arch::Flow::next || (flow == arch::Flow::call && !copy[at]);
  };
  while (at != nowhere && goes_on()) at = steps_[at].behind;
  if (at == nowhere || steps_[at].code.flow != arch::Flow::branch || copy[at]) return false;
  Marks seen(steps_.size());
  go(steps_[at].target, gates, seen, steps);
  go(steps_[at].behind, gates, seen, steps);
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (seen[i] && copies[i]) return true;
  return false;
}

bool CodeWays::runs(const Marks& copy, const Marks& seen) const {
  std::size_t all = 0;
  std::size_t run = 0;
  bool calls = false;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    all += copy[i] ? 1 : 0;
    run += copy[i] && seen[i] ? 1 : 0;
    calls |= copy[i] && seen[i] && steps_[i].code.flow == arch::Flow::call;
  }
  return calls || run * 2 >= all;
}

std::vector<VirtAddr> CodeWays::called_by(const Marks& copy) const {
  std::vector<VirtAddr> called;
  for (std::size_t i = 0; i < steps_.size(); ++i)
    if (const Step& each = steps_[i]; copy[i] && each.code.flow == arch::Flow::call && each.code.target)
      called.push_back(each.at + static_cast<std::uint64_t>(*each.code.target));
  std::ranges::sort(called);
  return called;
}

/// A copy that is whole, and followed by the next call, has the calls that this one has. One that lacks some goes on in
/// this one, since the compiler made one of their equal ends (-fcrossjumping).
bool CodeWays::is_joined(std::size_t first, const Marks& copy, const CopiesInside& copies, std::uint64_t& steps) const {
  std::vector<VirtAddr> before;  // in other copies
  for (std::size_t i = 0; i < steps_.size(); ++i)
    if (copies.marks[i] && !copy[i] && (steps_[i].target == first || steps_[i].behind == first))
      before.push_back(steps_[i].at);
  if (before.empty()) return false;
  const std::vector<VirtAddr> called = called_by(copy);
  for (const std::vector<CodeRange>& other : copies.code) {
    steps -= std::min<std::uint64_t>(steps, before.size() * other.size());
    const auto leads_there = [&](VirtAddr at) {
      return std::ranges::any_of(other, [at](const CodeRange& range) { return range.contains(at); });
    };
    if (steps != 0 && std::ranges::none_of(before, leads_there)) continue;
    steps -= std::min<std::uint64_t>(steps, steps_.size());
    const Marks there = marks_of(other, steps);
    if (steps == 0) return false;
    const auto size = [](const Marks& marks) { return std::ranges::count(marks, true); };
    if (called.empty() ? size(there) * 2 < size(copy) : !std::ranges::includes(called_by(there), called)) return true;
  }
  return false;
}

CopyArrival CodeWays::arrival(VirtAddr entry, std::span<const CodeRange> copy, std::span<const VirtAddr> all,
                              const CopiesInside& copies, std::uint64_t& steps) const {
  CopyArrival found;
  const std::size_t first = number_of(entry);
  steps -= std::min<std::uint64_t>(steps, steps_.size());
  if (first == nowhere || entry_ == nowhere || steps == 0) return found;
  const Marks inside = marks_of(copy, steps);
  Marks gates(steps_.size());
  gates[first] = true;
  for (const VirtAddr each : all)
    if (const std::size_t number = number_of(each); number != nowhere) gates[number] = true;
  found.rounds = steps_[first].code.repeats;
  for (std::size_t i = 0; i < steps_.size(); ++i) found.rounds |= inside[i] && steps_[i].target == first;
  found.left_early = leaves_early(first, inside, copies.marks, gates, steps);
  found.joined = is_joined(first, inside, copies, steps);
  const Marks seen = come_to(inside, gates, steps);
  if (steps == 0) return found;
  bool passed = false;
  for (std::size_t i = 0; i < seen.size(); ++i) passed |= seen[i] && inside[i];
  if (!passed || !runs(inside, seen)) return found;
  if (const auto meet = where_ways_meet(first, inside, seen, gates, steps))
    found.all_come_by = steps_[*meet].at;
  else
    found.passed_by = true;
  return found;
}

}  // namespace usdt::elf
