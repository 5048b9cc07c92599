// SPDX-License-Identifier: BSD-2-Clause
#include "elf/function_flow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <span>
#include <utility>

#include "arch/arch.hpp"
#include "arch/instructions.hpp"
#include "arch/leads.hpp"
#include "base/try.hpp"
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
  bool inner = false;  ///< only a call that the function makes of a part of itself leads there
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
bool is_switch(const ElfFile& file, ByteView code, const std::vector<std::size_t>& starts,
               const std::function<bool(VirtAddr)>& is_own) {
  const arch::SwitchJump jump = arch::switch_jump(file.machine(), code, starts);
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

/// One part of a function, and its instructions as far as they were told apart.
struct Part {
  CodePart place;
  Bytes code;
  std::vector<std::uint8_t> sizes;  ///< by distance: of the instruction that begins there; 0: none does
  std::vector<bool> taken;          ///< by distance: it is a byte of an instruction
  std::vector<Step> steps;

  /// Returns the beginnings of up to eight instructions that run one after the other and end with the one at `at`.
  [[nodiscard]] std::vector<std::size_t> straight_to(std::uint64_t at) const;
};

std::vector<std::size_t> Part::straight_to(std::uint64_t at) const {
  constexpr std::size_t most = 8;
  constexpr std::uint64_t longest = 15;  // bytes of an instruction
  std::vector<std::size_t> starts{static_cast<std::size_t>(at)};
  while (starts.size() < most) {
    std::uint64_t before = 1;
    const std::uint64_t end = starts.back();
    while (before <= std::min(longest, end) && sizes[end - before] != before) ++before;
    if (before > std::min(longest, end)) break;
    starts.push_back(static_cast<std::size_t>(end - before));
  }
  std::ranges::reverse(starts);
  return starts;
}

Result<Part> read_part(const ElfFile& file, const CodePart& place) {
  const OpenedFile& opened = *Inside::of(file);
  const auto offset = code_offset(opened.image, place.address);
  if (!offset) return fail(ErrorKind::not_supported, "its code is not in this file");
  if (place.size == 0)
    return fail(ErrorKind::not_supported, "no symbol says where it ends, so that its RET instructions are not known");
  Part part{.place = place, .code = {}, .sizes = {}, .taken = {}, .steps = {}};
  part.code = opened.file.bytes(offset->value, std::min(place.size, code_bytes_from(opened.image, place.address)));
  part.sizes.resize(part.code.size());
  part.taken.resize(part.code.size());
  return part;
}

/// The parts of one function, as far as they are known, and what their instructions say of others.
class Parts {
 public:
  Parts(const ElfFile& file, const FunctionPieces* pieces) : file_(file), pieces_(pieces) {}

  Result<void> read(const Function& function, const std::vector<CodePart>& others);
  [[nodiscard]] FunctionFlow flow();

 private:
  [[nodiscard]] static bool holds(const Part& part, VirtAddr at) {
    return part.place.has(at) && at.value - part.place.address.value < part.code.size();
  }
  [[nodiscard]] const Part* part_at(VirtAddr at) const {
    const auto found = std::ranges::find_if(parts_, [at](const Part& part) { return holds(part, at); });
    return found == parts_.end() ? nullptr : &*found;
  }
  [[nodiscard]] bool is_own(VirtAddr at) const {
    return std::ranges::any_of(parts_, [at](const Part& part) { return part.place.has(at); });
  }
  /// Whether some jump of `part` that says where it leads is wanted.
  template <class Wanted>
  [[nodiscard]] static bool has_jump(const Part& part, Wanted&& is_wanted) {
    return std::ranges::any_of(part.steps, [&](const Step& step) {
      return step.leaves() && step.code.target && is_wanted(part.place.address + step.target());
    });
  }
  Result<void> add(const CodePart& place);
  [[nodiscard]] bool belongs(const CodePart& place) const;
  /// Copies that a part jumps to and nobody else leads to, and pieces that have no symbol. Whether there are new ones.
  Result<bool> add_copies();
  Result<bool> add_open();

  /// The ways that begin at the places of `ahead_`, as long as they are the function's own.
  Result<void> follow(bool inner);
  Result<void> take(Part& part, std::uint64_t at, bool inner);
  [[nodiscard]] Result<void> check_bytes(const Part& part, const Step& step) const;
  [[nodiscard]] bool is_pushed_return(const Part& part, std::uint64_t ret) const;
  [[nodiscard]] bool only_replaces_return(VirtAddr called) const;
  void go_on_into_new_parts();
  [[nodiscard]] bool may_hide_instructions() const;
  Result<void> sweep();
  void tell(const Part& part, const Step& step, FunctionFlow& flow) const;

  const ElfFile& file_;
  const FunctionPieces* pieces_;
  std::vector<Part> parts_;       ///< the function's first
  std::vector<CodePart> open_;    ///< that may be parts
  std::vector<VirtAddr> ahead_;   ///< where instructions begin that were not told yet
  std::vector<VirtAddr> called_;  ///< by calls that say where they lead
  std::set<VirtAddr> looked_at_;  ///< where copies were looked for
};

/// Adds the part, with the pieces that are known of it.
Result<void> Parts::add(const CodePart& place) {
  const auto is_known = [&](const Part& each) { return each.place.address == place.address; };
  if (place.size == 0 && !parts_.empty()) return {};
  if (std::ranges::any_of(parts_, is_known)) return {};
  auto part = TRY(read_part(file_, place));
  parts_.push_back(std::move(part));
  if (pieces_ == nullptr) return {};
  for (const CodePart& piece : pieces_->of(place.address)) {
    if (piece.maybe)
      open_.push_back(piece);
    else if (auto added = add(piece); !added)
      return added;
  }
  return {};
}

bool Parts::belongs(const CodePart& place) const {
  for (const Part& each : parts_)
    if (has_jump(each, [&](VirtAddr target) { return place.has(target); })) return true;
  auto part = read_part(file_, place);
  if (!part) return false;
  for (std::uint64_t at = 0; at < part->code.size();) {
    const Step step{at, arch::decode_instruction(file_.machine(), ByteView(part->code).subspan(at))};
    if (step.code.size == 0) return false;
    if (step.leaves() && step.code.target && is_own(place.address + step.target())) return true;
    at += step.code.size;
  }
  return false;
}

Result<bool> Parts::add_copies() {
  if (pieces_ == nullptr) return false;
  const std::size_t before = parts_.size();
  std::vector<CodePart> own;
  std::vector<VirtAddr> targets;
  for (const Part& part : parts_) {
    own.push_back(part.place);
    for (const Step& step : part.steps)
      if (step.leaves() && step.code.target) targets.push_back(part.place.address + step.target());
  }
  for (const VirtAddr target : targets) {
    if (is_own(target) || !looked_at_.insert(target).second) continue;
    const auto copy = pieces_->clone_at(target);
    if (copy && copy->size > 0 && is_led_to_by(file_, target, own)) TRY(add(*copy));
    if (const auto unnamed = pieces_->unnamed_at(target)) TRY(add(*unnamed));
  }
  return parts_.size() > before;
}

Result<bool> Parts::add_open() {
  const auto found = std::ranges::find_if(open_, [this](const CodePart& each) { return belongs(each); });
  if (found == open_.end()) return false;
  const CodePart own = *found;
  open_.erase(found);
  TRY(add(own));
  return true;
}

/// One instruction within another is none, and what was taken for the ones behind are none. But for the one that leaves
/// out a prefix by which it is done at once for all processors (lll_lock() of glibc).
Result<void> Parts::check_bytes(const Part& part, const Step& step) const {
  constexpr std::uint8_t lock = 0xf0;
  if (step.code.size == 0)
    return fail(ErrorKind::malformed,
                fmt::format("at +{:#x} is no known instruction, so that its RET instructions are not known", step.at));
  const bool is_behind_lock = step.at > 0 && part.code[step.at - 1] == lock && part.sizes[step.at - 1] != 0;
  bool overlaps = part.taken[step.at] && !is_behind_lock;
  for (std::uint64_t i = step.at + 1; i < step.at + step.code.size; ++i)
    overlaps |= part.sizes[i] != 0 && !(i == step.at + 1 && part.code[step.at] == lock);
  if (!overlaps) return {};
  return fail(ErrorKind::malformed,
              "a jump leads into the middle of what was taken for an instruction, so that its RET instructions are not "
              "known");
}

/// Whether the RET at `ret` goes where the function says.
bool Parts::is_pushed_return(const Part& part, std::uint64_t ret) const {
  return arch::returns_elsewhere(file_.machine(), ByteView(part.code).first(ret + part.sizes[ret]),
                                 part.straight_to(ret));
}

/// Whether what a call leads to puts another address in the place of its return address, and goes there: a retpoline,
/// which is a jump by that value.
bool Parts::only_replaces_return(VirtAddr called) const {
  constexpr std::size_t most = 4;
  const Part* part = part_at(called);
  if (part == nullptr) return false;
  std::uint64_t at = called.value - part->place.address.value;
  std::vector<std::size_t> starts;
  while (at < part->code.size() && starts.size() < most) {
    const auto code = arch::decode_instruction(file_.machine(), ByteView(part->code).subspan(at));
    starts.push_back(static_cast<std::size_t>(at));
    at += code.size;
    if (code.flow == arch::Flow::ret)
      return arch::returns_elsewhere(file_.machine(), ByteView(part->code).first(at), starts);
    if (code.size == 0 || code.flow != arch::Flow::next) return false;
  }
  return false;
}

Result<void> Parts::take(Part& part, std::uint64_t at, bool inner) {
  if (part.sizes[at] != 0) return {};
  Step step{
      .at = at, .code = arch::decode_instruction(file_.machine(), ByteView(part.code).subspan(at)), .inner = inner};
  TRY(check_bytes(part, step));
  part.sizes[at] = step.code.size;
  for (std::uint64_t i = at; i < at + step.code.size; ++i) part.taken[i] = true;
  const VirtAddr here = part.place.address + at;
  const bool calls = step.code.flow == arch::Flow::call && step.code.target;
  if (calls) called_.push_back(part.place.address + step.target());
  if (calls && only_replaces_return(part.place.address + step.target()))
    step.code = {.size = step.code.size, .flow = arch::Flow::jump};
  if (step.leaves() && step.code.target) ahead_.push_back(part.place.address + step.target());
  if (step.code.flow != arch::Flow::jump && step.code.flow != arch::Flow::ret) ahead_.push_back(here + step.code.size);
  part.steps.push_back(step);
  return {};
}

Result<void> Parts::follow(bool inner) {
  while (!ahead_.empty()) {
    const VirtAddr at = ahead_.back();
    ahead_.pop_back();
    const auto part = std::ranges::find_if(parts_, [at](const Part& each) { return holds(each, at); });
    if (part == parts_.end()) continue;
    TRY(take(*part, at.value - part->place.address.value, inner));
  }
  return {};
}

/// From jumps that led away, and from the end of a part that another one follows.
void Parts::go_on_into_new_parts() {
  for (const Part& part : parts_) {
    for (const Step& step : part.steps) {
      if (step.inner) continue;
      if (step.leaves() && step.code.target) ahead_.push_back(part.place.address + step.target());
      if (step.code.flow != arch::Flow::jump && step.code.flow != arch::Flow::ret)
        ahead_.push_back(part.place.address + step.at + step.code.size);
    }
  }
}

/// Whether there may be instructions that no way leads to: behind jumps that do not say where they lead, and where
/// exceptions are handled.
bool Parts::may_hide_instructions() const {
  if (pieces_ == nullptr) return true;
  for (const Part& part : parts_) {
    if (pieces_->may_land_in(part.place.address)) return true;
    for (const Step& step : part.steps)
      if (!step.inner && ((step.leaves() && !step.code.target) ||
                          (step.code.flow == arch::Flow::ret && is_pushed_return(part, step.at))))
        return true;
  }
  return false;
}

/// Reads the code that no way led to, from its first byte on.
Result<void> Parts::sweep() {
  for (Part& part : parts_) {
    for (std::uint64_t at = 0; at < part.code.size(); ++at) {
      if (part.taken[at]) continue;
      ahead_.push_back(part.place.address + at);
      TRY(follow(false));
      if (!part.taken[at]) break;  // (another part has it, too)
    }
  }
  return {};
}

Result<void> Parts::read(const Function& function, const std::vector<CodePart>& others) {
  if (auto added = add({.address = function.address, .size = function.size}); !added) return added;
  for (const CodePart& each : others) TRY(add(each));
  ahead_.push_back(function.address);
  while (true) {
    TRY(follow(false));
    auto more = add_copies();
    if (more && !*more) more = add_open();
    if (!more) return fail(more.error());
    if (*more) {
      go_on_into_new_parts();
      continue;
    }
    ahead_ = called_;
    TRY(follow(true));
    if (!may_hide_instructions()) return {};
    TRY(sweep());
    // The code that was swept may lead to more parts; they have no instructions yet.
    more = add_copies();
    if (more && !*more) more = add_open();
    if (!more) return fail(more.error());
    if (!*more) return {};
    go_on_into_new_parts();
  }
}

void Parts::tell(const Part& part, const Step& step, FunctionFlow& flow) const {
  const bool by_value = !step.code.target;
  const auto code = [&] { return ByteView(part.code).first(step.at + step.code.size); };
  const auto own = [&](VirtAddr at) { return part.place.has(at) || is_own(at); };
  flow.calls_kernel |= step.code.calls_kernel;
  if (step.code.flow == arch::Flow::call && !by_value) flow.called.push_back(part.place.address + step.target());
  if (step.code.flow == arch::Flow::call && by_value) flow.calls_by_value = true;
  if (step.code.flow == arch::Flow::ret && !step.inner) {
    if (is_pushed_return(part, step.at))
      ++flow.jumps_by_value;
    else
      flow.returns.push_back(part.place.address + step.at);
  }
  if (!step.leaves()) return;
  if (!by_value) {
    const VirtAddr target = part.place.address + step.target();
    flow.targets.push_back(target);
    if (is_own(target)) return;
    flow.away.push_back(target);
    ++flow.jumps_away;
  } else if (step.code.flow == arch::Flow::jump && is_switch(file_, code(), part.straight_to(step.at), own)) {
    ++flow.jumps_by_table;
  } else if (step.inner) {
    flow.calls_by_value = true;
  } else {
    ++flow.jumps_by_value;
  }
}

FunctionFlow Parts::flow() {
  FunctionFlow flow;
  for (Part& part : parts_) {
    std::ranges::sort(part.steps, {}, &Step::at);
    for (const Step& step : part.steps) tell(part, step, flow);
  }
  std::ranges::sort(flow.returns);
  if (const auto behind = behind_stack_check(parts_.front().steps))
    flow.checked = parts_.front().place.address + *behind;
  return flow;
}

}  // namespace

bool may_jump_to(const ElfFile& file, const Function& function, VirtAddr first, VirtAddr last) {
  const OpenedFile& opened = *Inside::of(file);
  const auto offset = code_offset(opened.image, function.address);
  if (!offset) return false;
  const std::uint64_t size = std::min(function.size, code_bytes_from(opened.image, function.address));
  return !arch::for_each_lead(file.machine(), opened.file.bytes(offset->value, size), function.address,
                              [&](VirtAddr, VirtAddr to, bool is_call) { return is_call || to < first || to > last; });
}

Result<FunctionFlow> flow_of(const ElfFile& file, const Function& function, const FunctionPieces* pieces,
                             const std::vector<CodePart>& others) {
  if (!arch::knows_instructions(file.machine()))
    return fail(ErrorKind::not_supported, "this build of the library cannot tell x86 instructions apart");
  Parts parts(file, pieces);
  TRY(parts.read(function, others));
  return parts.flow();
}

}  // namespace usdt::elf
