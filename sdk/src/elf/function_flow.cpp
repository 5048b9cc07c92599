// SPDX-License-Identifier: BSD-2-Clause
#include "elf/function_flow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <span>

#include "arch/arch.hpp"
#include "arch/instructions.hpp"
#include "elf/elf_impl.hpp"
#include "elf/led_to.hpp"

namespace usdt::elf {
namespace {

/// Go's check has at most two comparisons with a branch behind each, and what they compare is computed before.
constexpr std::size_t kLongestCheck = 10;

/// An instruction of a function, by its distance from the start; jumps lead to another one, which may be outside.
struct Step {
  std::uint64_t at;
  arch::Instruction code;
  bool by_table = false;  ///< a jump to where a table says that leads to code of the function
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

/// Whether the jump that `code` ends with, to where a register or memory says, is that of a switch: compilers add a
/// distance out of a table to an address, or take the address out of a table, whose first one is the function's own.
bool is_switch(const ElfFile& file, ByteView code, const std::vector<std::uint64_t>& starts,
               const std::function<bool(VirtAddr)>& is_own) {
  constexpr std::size_t most = 8;
  const std::size_t first = starts.size() - std::min(starts.size(), most);
  std::array<std::size_t, most> last{};
  for (std::size_t i = first; i < starts.size(); ++i)
    last[i - first] = static_cast<std::size_t>(starts[i] - starts[first]);
  const arch::SwitchJump jump = arch::switch_jump(file.machine(), code.subspan(static_cast<std::size_t>(starts[first])),
                                                  std::span(last).first(starts.size() - first));
  if (jump.by_distance) return true;
  if (!jump.table) return false;
  const OpenedFile& opened = *Inside::of(file);
  const std::size_t word = arch::for_machine(file.machine()).word_size;
  // A program that is not moved when it is loaded has the address in the file.
  for (const Segment& segment : opened.image.segments) {
    if (segment.type != PT_LOAD || opened.image.type != ET_EXEC || *jump.table < segment.vaddr) continue;
    const std::uint64_t distance = *jump.table - segment.vaddr;
    if (!within(distance, word, segment.filesz)) continue;
    const Bytes entry = opened.file.bytes(opened.image.start + segment.offset + distance, word);
    return entry.size() == word && is_own(VirtAddr(load_word(entry, 0, opened.image.is64)));
  }
  return false;
}

/// The instructions of one part of a function.
struct Steps {
  std::vector<Step> some;  ///< those that lead elsewhere, and the first ones
  /// Whether an instruction begins at each place of the part that its own jumps lead to. Where not, something in it is
  /// no instruction, and what was taken for the ones behind are none.
  bool in_step = true;
};

Result<Steps> steps_of(const ElfFile& file, const CodePart& part, const std::function<bool(VirtAddr)>& is_own) {
  const OpenedFile& opened = *Inside::of(file);
  const auto offset = code_offset(opened.image, part.address);
  if (!offset) return fail(ErrorKind::not_supported, "its code is not in this file");
  if (part.size == 0)
    return fail(ErrorKind::not_supported, "no symbol says where it ends, so that its RET instructions are not known");
  const std::uint64_t size = std::min(part.size, code_bytes_from(opened.image, part.address));
  const Bytes code = opened.file.bytes(offset->value, size);
  Steps steps;
  std::vector<std::uint64_t> starts;
  for (std::uint64_t at = 0; at < code.size();) {
    Step step{at, arch::decode_instruction(file.machine(), ByteView(code).subspan(at))};
    if (step.code.size == 0)
      return fail(ErrorKind::malformed,
                  fmt::format("at +{:#x} is no known instruction, so that its RET instructions are "
                              "not known",
                              at));
    starts.push_back(at);
    if (step.code.flow == arch::Flow::jump && !step.code.target)
      step.by_table = is_switch(file, ByteView(code).first(at + step.code.size), starts, is_own);
    if (step.code.flow != arch::Flow::next || starts.size() <= kLongestCheck) steps.some.push_back(step);
    at += step.code.size;
  }
  // One that is behind a prefix by which it is done at once for all processors leaves that out (lll_lock() of glibc).
  const auto begins_at = [&](std::uint64_t at) {
    constexpr std::uint8_t lock = 0xf0;
    return std::ranges::binary_search(starts, at) ||
           (at > 0 && code[at - 1] == lock && std::ranges::binary_search(starts, at - 1));
  };
  steps.in_step = std::ranges::all_of(steps.some, [&](const Step& step) {
    return !step.leaves() || !step.code.target || step.target() >= code.size() || begins_at(step.target());
  });
  return steps;
}

/// The parts of one function, as far as they are known, and what their instructions say of others.
class Parts {
 public:
  Parts(const ElfFile& file, const FunctionPieces* pieces) : file_(file), pieces_(pieces) {}

  Result<void> read(const Function& function, const std::vector<CodePart>& others);
  [[nodiscard]] FunctionFlow flow() const;

 private:
  [[nodiscard]] bool is_own(VirtAddr at) const {
    return std::ranges::any_of(parts_, [at](const CodePart& part) { return part.has(at); });
  }
  [[nodiscard]] Result<Steps> steps_of_part(const CodePart& part) const {
    return steps_of(file_, part, [this, &part](VirtAddr at) { return part.has(at) || is_own(at); });
  }
  /// Calls `visit(target)` for each jump out of a part that says itself where it leads; until one is what is wanted.
  template <class Wanted>
  [[nodiscard]] bool has_jump(const Steps& steps, const CodePart& part, Wanted&& is_wanted) const {
    return std::ranges::any_of(steps.some, [&](const Step& step) {
      return step.leaves() && step.code.target && is_wanted(part.address + step.target());
    });
  }
  void add(const CodePart& part);
  [[nodiscard]] bool belongs(const CodePart& part) const;
  void add_copies(std::size_t part);

  const ElfFile& file_;
  const FunctionPieces* pieces_;
  std::vector<CodePart> parts_;  ///< the function's first
  std::vector<Steps> steps_;     ///< of parts_
  std::vector<CodePart> open_;   ///< that may be parts
};

/// Adds the part, with the pieces that are known of it.
void Parts::add(const CodePart& part) {
  const auto is_known = [&](const CodePart& each) { return each.address == part.address; };
  if (part.size == 0 && !parts_.empty()) return;
  if (std::ranges::any_of(parts_, is_known)) return;
  parts_.push_back(part);
  if (pieces_ == nullptr) return;
  for (const CodePart& piece : pieces_->of(part.address)) {
    if (piece.maybe)
      open_.push_back(piece);
    else
      add(piece);
  }
}

bool Parts::belongs(const CodePart& part) const {
  for (std::size_t i = 0; i < steps_.size(); ++i)
    if (has_jump(steps_[i], parts_[i], [&](VirtAddr target) { return part.has(target); })) return true;
  const auto steps = steps_of_part(part);
  return steps && has_jump(*steps, part, [this](VirtAddr target) { return is_own(target); });
}

/// Adds copies that the part jumps to and nobody else leads to, and pieces that have no symbol.
void Parts::add_copies(std::size_t part) {
  for (const Step& step : steps_[part].some) {
    if (pieces_ == nullptr || !step.leaves() || !step.code.target) continue;
    const VirtAddr target = parts_[part].address + step.target();
    if (is_own(target)) continue;
    const auto copy = pieces_->clone_at(target);
    if (copy && copy->size > 0 && is_led_to_by(file_, target, parts_)) add(*copy);
    if (const auto unnamed = pieces_->unnamed_at(target)) add(*unnamed);
  }
}

Result<void> Parts::read(const Function& function, const std::vector<CodePart>& others) {
  add({.address = function.address, .size = function.size});
  for (const CodePart& each : others) add(each);
  while (steps_.size() < parts_.size()) {
    const std::size_t part = steps_.size();
    auto steps = steps_of_part(parts_[part]);
    if (!steps) return fail(steps.error());
    if (!steps->in_step)
      return fail(ErrorKind::malformed,
                  "a jump leads into the middle of what was taken for an instruction, so that its RET instructions are "
                  "not known");
    steps_.push_back(*std::move(steps));
    add_copies(part);
    if (steps_.size() < parts_.size()) continue;
    const auto found = std::ranges::find_if(open_, [this](const CodePart& each) { return belongs(each); });
    if (found == open_.end()) break;
    const CodePart own = *found;
    open_.erase(found);
    add(own);
  }
  return {};
}

FunctionFlow Parts::flow() const {
  FunctionFlow flow;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    for (const Step& step : steps_[i].some) {
      if (step.code.flow == arch::Flow::ret) flow.returns.push_back(parts_[i].address + step.at);
      flow.calls |= step.code.flow == arch::Flow::call;
      if (step.code.flow == arch::Flow::call && step.code.target)
        flow.called.push_back(parts_[i].address + step.target());
      if (!step.leaves()) continue;
      if (step.code.target) {
        flow.targets.push_back(parts_[i].address + step.target());
        flow.jumps_away += is_own(flow.targets.back()) ? 0 : 1;
      } else {
        ++(step.by_table ? flow.jumps_by_table : flow.jumps_by_value);
      }
    }
  }
  std::ranges::sort(flow.returns);
  if (const auto behind = behind_stack_check(steps_.front().some)) flow.checked = parts_.front().address + *behind;
  return flow;
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

Result<FunctionFlow> flow_of(const ElfFile& file, const Function& function, const FunctionPieces* pieces,
                             const std::vector<CodePart>& others) {
  if (!arch::knows_instructions(file.machine()))
    return fail(ErrorKind::not_supported, "this build of the library cannot tell x86 instructions apart");
  Parts parts(file, pieces);
  if (auto read = parts.read(function, others); !read) return fail(read.error());
  return parts.flow();
}

}  // namespace usdt::elf
