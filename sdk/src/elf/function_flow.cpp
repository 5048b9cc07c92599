// SPDX-License-Identifier: BSD-2-Clause
#include "elf/function_flow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "arch/instructions.hpp"
#include "elf/elf_impl.hpp"

namespace usdt::elf {
namespace {

/// Go's check has at most two comparisons with a branch behind each, and what they compare is computed before.
constexpr std::size_t kLongestCheck = 10;

/// An instruction of a function, by its distance from the start; jumps lead to another one, which may be outside.
struct Step {
  std::uint64_t at;
  arch::Instruction code;
  [[nodiscard]] std::uint64_t target() const { return at + static_cast<std::uint64_t>(*code.target); }
  [[nodiscard]] bool leaves() const { return code.flow == arch::Flow::jump || code.flow == arch::Flow::branch; }
};

/// Behind the last branch of the first instructions that leads to where the function begins anew. That is at its end: a
/// call of the runtime, and a jump to the first instruction.
std::optional<std::uint64_t> behind_stack_check(const std::vector<Step>& steps) {
  const auto again = std::ranges::find_if(steps, [](const Step& step) {
    return step.code.flow == arch::Flow::jump && step.code.target && step.target() == 0;
  });
  if (again == steps.end()) return std::nullopt;
  std::optional<std::uint64_t> behind;
  std::optional<std::uint64_t> leads_to;
  for (std::size_t i = 0; i < std::min(steps.size(), kLongestCheck); ++i) {
    const Step& step = steps[i];
    if (step.code.flow == arch::Flow::next) continue;
    if (step.code.flow != arch::Flow::branch || !step.code.target) break;
    if (leads_to && *leads_to != step.target()) break;
    leads_to = step.target();
    behind = step.at + step.code.size;
  }
  if (!behind || *leads_to <= *behind || *leads_to > again->at) return std::nullopt;
  // The block of that branch comes to the jump, by a call and nothing else that leads elsewhere.
  bool calls = false;
  for (const Step& step : steps) {
    if (step.at < *leads_to || step.at >= again->at) continue;
    if (step.code.flow != arch::Flow::next && step.code.flow != arch::Flow::call) return std::nullopt;
    calls |= step.code.flow == arch::Flow::call;
  }
  return calls ? behind : std::nullopt;
}

/// Those that lead elsewhere, and the first ones.
Result<std::vector<Step>> steps_of(const ElfFile& file, const Function& function) {
  const OpenedFile& opened = *Inside::of(file);
  const auto offset = function.offset ? function.offset : code_offset(opened.image, function.address);
  if (!offset) return fail(ErrorKind::not_supported, "its code is not in this file");
  if (function.size == 0)
    return fail(ErrorKind::not_supported, "no symbol says where it ends, so that its RET instructions are not known");
  const std::uint64_t size = std::min(function.size, code_bytes_from(opened.image, function.address));
  const Bytes code = opened.file.bytes(offset->value, size);
  std::vector<Step> steps;
  for (std::uint64_t at = 0; at < code.size();) {
    const Step step{at, arch::decode_instruction(file.machine(), ByteView(code).subspan(at))};
    if (step.code.size == 0)
      return fail(ErrorKind::malformed,
                  fmt::format("at +{:#x} is no known instruction, so that its RET instructions are "
                              "not known",
                              at));
    if (step.code.flow != arch::Flow::next || steps.size() < kLongestCheck) steps.push_back(step);
    at += step.code.size;
  }
  return steps;
}

}  // namespace

bool may_jump_to(const ElfFile& file, const Function& function, VirtAddr first, VirtAddr last) {
  const OpenedFile& opened = *Inside::of(file);
  const auto offset = code_offset(opened.image, function.address);
  if (!offset) return false;
  if (file.machine() == Machine::aarch64) return true;
  const std::uint64_t size = std::min(function.size, code_bytes_from(opened.image, function.address));
  const Bytes code = opened.file.bytes(offset->value, size);
  const auto leads_there = [&](std::size_t behind, std::int64_t distance) {
    const std::uint64_t target = function.address.value + behind + static_cast<std::uint64_t>(distance);
    return target >= first.value && target <= last.value;
  };
  constexpr std::size_t near = 4;  // bytes of a distance; others have one
  for (std::size_t i = 1; i < code.size(); ++i) {
    const std::uint8_t before = code[i - 1];
    const bool is_short = before == 0xeb || (before >= 0x70 && before <= 0x7f) || (before >= 0xe0 && before <= 0xe3);
    if (is_short && leads_there(i + 1, static_cast<std::int8_t>(code[i]))) return true;
    const bool is_near = before == 0xe9 || (before >= 0x80 && before <= 0x8f);  // the latter behind 0x0f
    if (!is_near || i + near > code.size()) continue;
    std::int32_t distance = 0;
    std::memcpy(&distance, &code[i], near);
    if (leads_there(i + near, distance)) return true;
  }
  return false;
}

Result<FunctionFlow> flow_of(const ElfFile& file, const Function& function,
                             const std::vector<const Function*>& halves) {
  if (!arch::knows_instructions(file.machine()))
    return fail(ErrorKind::not_supported, "this build of the library cannot tell x86 instructions apart");
  FunctionFlow flow;
  std::vector<const Function*> parts{&function};
  // Functions of one name may be several, with a half each: its own is what it jumps to.
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto steps = steps_of(file, *parts[i]);
    if (!steps) return fail(steps.error());
    for (const Step& step : *steps) {
      if (step.code.flow == arch::Flow::ret) flow.returns.push_back(parts[i]->address + step.at);
      flow.calls |= step.code.flow == arch::Flow::call;
      if (step.code.flow == arch::Flow::call && step.code.target)
        flow.called.push_back(parts[i]->address + step.target());
      if (!step.leaves()) continue;
      if (!step.code.target) {
        ++flow.jumps_by_value;
        continue;
      }
      flow.targets.push_back(parts[i]->address + step.target());
      const auto half = std::ranges::find_if(
          halves, [&](const Function* each) { return flow.targets.back().value - each->address.value < each->size; });
      if (half != halves.end() && std::ranges::find(parts, *half) == parts.end()) parts.push_back(*half);
    }
    if (i > 0) continue;
    if (const auto behind = behind_stack_check(*steps)) flow.checked = function.address + *behind;
  }
  flow.jumps_away = static_cast<std::size_t>(std::ranges::count_if(flow.targets, [&parts](VirtAddr target) {
    return std::ranges::none_of(
        parts, [target](const Function* part) { return target.value - part->address.value < part->size; });
  }));
  return flow;
}

}  // namespace usdt::elf
