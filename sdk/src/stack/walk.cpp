// SPDX-License-Identifier: BSD-2-Clause
#include "stack/walk.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "arch/arch.hpp"
#include "usdt/bpf/event.h"

namespace usdt::stack {
namespace {

using locate::FrameStep;

/// The copy of the stack, which grows upwards from the stack pointer.
class Memory {
 public:
  Memory(const RecordedStack& stack, std::uint64_t from) : stack_(stack), from_(from) {}

  [[nodiscard]] std::optional<std::uint64_t> read(std::uint64_t address, unsigned size) {
    const std::uint64_t at = address - from_;
    const std::uint64_t all = stack_.memory.size();
    if (address < from_ || at > all || size > all - at) {
      beyond_ |= address >= from_ && address - from_ < longest_stack;
      return std::nullopt;
    }
    std::uint64_t value = 0;
    std::memcpy(&value, stack_.memory.data() + at, size);
    return value;
  }
  /// Whether something was asked for that is on the stack, behind the copy.
  [[nodiscard]] bool is_cut() const noexcept { return beyond_ && stack_.cut; }

 private:
  static constexpr std::uint64_t longest_stack = 8ULL << 30;
  const RecordedStack& stack_;
  std::uint64_t from_;
  bool beyond_ = false;
};

class Walk {
 public:
  Walk(Process& process, const RecordedStack& stack, const EventLayout& layout, const Hit& hit)
      : process_(process),
        stack_(stack),
        hit_(hit),
        arch_(arch::for_machine(hit.machine)),
        numbers_(arch_.frames),
        memory_(stack, word(stack.registers, arch_.reg(arch_.stack_pointer).pt_regs_word)),
        most_(layout.user_stack_depth) {
    for (unsigned n = 0; n < numbers_.count && n < arch_.dwarf_registers.size(); ++n) {
      const RegisterId id = arch_.dwarf_registers[n];
      if (id == RegisterId::none || stack.registers.empty()) continue;
      if (const int at = arch_.reg(id).pt_regs_word; at >= 0) registers_.values[n] = word(stack.registers, at);
    }
    registers_.pc = word(stack.registers, arch_.ip_word);
    add(registers_.pc, hit.returns);
  }

  [[nodiscard]] Walked by_call_frames() {
    note_frame();
    while (!full() && step_out()) {
      add(registers_.pc, !signal_);
      note_frame();
    }
    return finish();
  }

  /// The kernel's chain, which misses the caller of a function that has no frame yet, or never has: as long as a
  /// function's frame is not where the frame pointer says, its rules are followed.
  [[nodiscard]] Walked by_frame_pointers() {
    const auto first = registers_.values[numbers_.frame_pointer];
    unsigned taken = 0;
    bool skipped = false;
    while (!full() && !keeps_frame_pointer(walked_.steps.back().lookup())) {
      if (registers_.values[numbers_.frame_pointer] != first || !step_while_no_frame()) {
        skipped = has_rule_ || walked_.steps.back().signal;
        break;
      }
      add(registers_.pc, !signal_);
      ++taken;
    }
    if (walked_.end != FrameIssue::none || outermost_) return finish();
    const std::size_t next = join_at(taken);
    return skipped && !skip_callers(next) ? finish() : follow_chain(next);
  }

  /// Nothing is known but the chain, and perhaps who called a function that has no frame yet.
  [[nodiscard]] Walked by_chain(const TableStack& stack, bool adds_caller) {
    const auto& chain = stack_.addresses;
    walked_ = {};
    frames_ = 0;
    add(chain.front(), hit_.returns);
    std::size_t next = 1;
    if (stack.caller != 0) {
      add(as_address(stack.caller), true);
      if (adds_caller && chain.size() > 1 && chain[1] == walked_.steps.back().address) ++next;
    }
    const bool skipped = next < chain.size() && (loses_caller(walked_.steps.back().lookup()) ||
                                                 (stack.caller == 0 && is_stub(walked_.steps.back().lookup())));
    return skipped && !skip_callers(next) ? finish() : follow_chain(next);
  }

 private:
  /// The rest of the kernel's chain.
  [[nodiscard]] Walked follow_chain(std::size_t next) {
    const auto& chain = stack_.addresses;
    for (std::size_t i = next; i < chain.size() && !full(); ++i) {
      add(chain[i], true);
      const bool last = i + 1 == chain.size();
      const bool misses = loses_caller(walked_.steps.back().lookup()) || walked_.steps.back().signal;
      if (!last && !full() && misses && !skip_callers(i + 1)) return finish();
    }
    const Area* area = process_.find(walked_.steps.back().lookup());
    if (full())
      walked_.end = FrameIssue::depth_reached;
    else if (!is_outermost(area, walked_.steps.back().lookup()))
      walked_.end = FrameIssue::chain_ended;
    return std::move(walked_);
  }

  /// Behind a function whose frame has another base, the frame pointer is that of a caller further up, or holds
  /// anything at all, and the chain goes on with what lies there. False: that is where no call returns to.
  bool skip_callers(std::size_t next) {
    if (next >= stack_.addresses.size() || may_return_to(stack_.addresses[next])) {
      say(FrameIssue::callers_skipped);
      return true;
    }
    return end_with(FrameIssue::chain_ended);
  }
  [[nodiscard]] bool may_return_to(std::uint64_t address) {
    const Area* area = process_.find(address - 1);
    if (area == nullptr) return false;
    const auto at = area->module ? linked(*area, address - 1) : std::nullopt;
    return !at || area->module->may_return_to(VirtAddr(at->value + 1));
  }

  static std::uint64_t word(std::span<const std::uint64_t> registers, int at) {
    return at >= 0 && static_cast<std::size_t>(at) < registers.size() ? registers[static_cast<std::size_t>(at)] : 0;
  }
  [[nodiscard]] std::uint64_t as_address(std::uint64_t value) const noexcept {
    return value & arch_.return_address_mask;
  }
  void add(std::uint64_t address, bool return_address) {
    walked_.steps.push_back({.address = address, .return_address = return_address});
    walked_.steps.back().signal = return_address && returns_from_signal(address);
    walked_.steps.back().resumed = return_address && process_.resumes_at(address, hit_.when);
    ++frames_;
  }
  /// The stack pointer in a function is the lowest address of its frame.
  void note_frame() {
    Step& step = walked_.steps.back();
    step.stack = registers_.values[numbers_.stack_pointer].value_or(0);
    if (!hit_.kept) return;
    for (std::size_t i = 0; i < step.kept.size(); ++i)
      step.kept[i] = (*hit_.kept)[i] < numbers_.count ? registers_.values[(*hit_.kept)[i]].value_or(0) : 0;
  }
  /// Also where nothing describes that code, as in musl.
  [[nodiscard]] bool returns_from_signal(std::uint64_t address) {
    const Area* area = process_.known(address);
    if (area == nullptr || !area->module || area->module->machine() != hit_.machine) return false;
    const auto at = linked(*area, address);
    return at && area->module->returns_from_signal(*at);
  }
  void say(FrameIssue issue) { walked_.steps.push_back({.issue = issue}); }
  [[nodiscard]] bool full() const noexcept { return frames_ >= most_; }
  Walked finish() {
    if (walked_.end == FrameIssue::none && full() && !outermost_) walked_.end = FrameIssue::depth_reached;
    return std::move(walked_);
  }

  [[nodiscard]] static std::optional<VirtAddr> linked(const Area& area, std::uint64_t address) {
    return area.module->address_of(FileOffset(address - area.start + area.offset));
  }
  [[nodiscard]] locate::CallFrames* rules_of(const Area* area) {
    return area != nullptr && area->module && area->module->machine() == hit_.machine ? area->module->call_frames()
                                                                                      : nullptr;
  }
  [[nodiscard]] bool is_outermost(const Area* area, std::uint64_t lookup) {
    locate::CallFrames* rules = rules_of(area);
    const auto at = rules != nullptr ? linked(*area, lookup) : std::nullopt;
    return at && rules->is_outermost(*at);
  }

  /// One frame by the rules of its file.
  FrameStep step_by_rule() {
    const std::uint64_t lookup = walked_.steps.back().lookup();
    const Area* area = process_.find(lookup);
    locate::CallFrames* rules = rules_of(area);
    const auto at = rules != nullptr ? linked(*area, lookup) : std::nullopt;
    has_rule_ = false;
    if (walked_.steps.size() == 1 && hit_.on_return) return return_at_once();
    if (!at) return FrameStep::no_rule;
    const auto stack_pointer = registers_.values[numbers_.stack_pointer];
    const FrameStep step = rules->step(
        *at, registers_, [this](std::uint64_t address, unsigned size) { return memory_.read(address, size); }, signal_);
    has_rule_ = step != FrameStep::no_rule;
    walked_.steps.back().signal |= signal_;
    outermost_ = step == FrameStep::outermost;
    if (step != FrameStep::taken) return step;
    registers_.pc = as_address(registers_.pc);
    outermost_ = registers_.pc == 0;
    // Stacks grow downwards. A handler of a signal may have one of its own.
    const auto caller = registers_.values[numbers_.stack_pointer];
    if (!signal_ && stack_pointer && (!caller || *caller < *stack_pointer)) return FrameStep::lost_value;
    return outermost_ ? FrameStep::outermost : FrameStep::taken;
  }

  /// To the caller of a function that has no frame of its own at the hit.
  bool step_while_no_frame() {
    const FrameStep step = step_by_rule();
    return step == FrameStep::taken || (step == FrameStep::no_rule && is_hit_in_stub() && return_from_entry());
  }

  /// To the caller; false: the stack ends here, and why is known.
  bool step_out() {
    signal_ = false;
    switch (step_by_rule()) {
      case FrameStep::taken:
        break;
      case FrameStep::outermost:
        return false;
      case FrameStep::no_rule:
        if (!step_without_rule()) return end_with(memory_.is_cut() ? FrameIssue::copy_ended : FrameIssue::no_rule);
        break;
      case FrameStep::lost_value:
        return end_with(memory_.is_cut() ? FrameIssue::copy_ended : FrameIssue::lost_value);
    }
    // The kernel maps where return probes lead when it needs to: that may not be known yet.
    const Area* area = process_.find(registers_.pc);
    if (area != nullptr && !area->is_return_probe()) return true;
    return restore_return() || area == nullptr || end_with(FrameIssue::return_probe);
  }
  /// Puts the caller's address in the place of a return probe's. The kernel keeps the stack pointer of a call's entry:
  /// what that is to the caller depends on who puts the return address on the stack.
  bool restore_return() {
    const auto stack_pointer = registers_.values[numbers_.stack_pointer];
    if (!stack_pointer) return false;
    const auto call =
        std::ranges::find(stack_.replaced, *stack_pointer - arch_.entry_frame, &usdt_replaced_return::stack);
    if (call == stack_.replaced.end()) return false;
    registers_.pc = as_address(call->address);
    return true;
  }
  bool end_with(FrameIssue issue) {
    walked_.end = issue;
    return false;
  }

  /// Code that nobody describes: a JIT compiler's. At a function's first instruction all machines have the return
  /// address in a known place; elsewhere the frame pointer may be one.
  bool step_without_rule() {
    if (walked_.steps.back().signal) return step_out_of_signal();
    if ((walked_.steps.size() == 1 && hit_.at_entry) || is_hit_in_stub()) return return_from_entry();
    const auto base = registers_.values[numbers_.frame_pointer];
    const auto stack_pointer = registers_.values[numbers_.stack_pointer];
    if (!base || !stack_pointer || *base < *stack_pointer || *base % arch_.word_size != 0) return false;
    const std::uint64_t record = frame_record(*base);
    const auto next = memory_.read(record, arch_.word_size);
    const auto back = memory_.read(record + arch_.word_size, arch_.word_size);
    if (!next || !back || process_.find(as_address(*back) - 1) == nullptr) return false;
    forget_registers();
    registers_.values[numbers_.frame_pointer] = next;
    registers_.values[numbers_.stack_pointer] = record + 2ULL * arch_.word_size;
    registers_.pc = as_address(*back);
    // At its call it has one, and not before its first instructions.
    const Step& from = walked_.steps.back();
    if (!from.return_address || !process_.keeps_frame_pointers(from.lookup(), hit_.when))
      say(FrameIssue::by_frame_pointer);
    return true;
  }
  /// Returns the address at which a function keeps its caller's frame pointer, and the return address behind it.
  [[nodiscard]] std::uint64_t frame_record(std::uint64_t frame_pointer) const noexcept {
    return frame_pointer + static_cast<std::uint64_t>(std::int64_t{numbers_.record});
  }
  /// To what a signal interrupted, whose registers the kernel has put on the stack (struct rt_sigframe of
  /// arch/x86/include/asm/sigframe.h, of which the handler has taken the return address).
  bool step_out_of_signal() {
    const auto stack_pointer = registers_.values[numbers_.stack_pointer];
    const std::span order = arch_.signal_frame.registers;
    if (order.empty() || !stack_pointer) return false;
    const std::uint64_t context = *stack_pointer + arch_.signal_frame.offset;
    forget_registers();
    for (std::size_t i = 0; i < order.size(); ++i) registers_.values[order[i]] = memory_.read(context + 8 * i, 8);
    const auto interrupted = memory_.read(context + 8 * order.size(), 8);
    if (!interrupted || process_.find(*interrupted) == nullptr) return false;
    registers_.pc = *interrupted;
    signal_ = true;
    return true;
  }
  /// A probe in a stub of <usdt/probe.h>, which no unwind information describes: compilers know nothing of that code.
  [[nodiscard]] bool is_hit_in_stub() { return walked_.steps.size() == 1 && is_stub(walked_.steps.front().lookup()); }
  [[nodiscard]] bool is_stub(std::uint64_t lookup) {
    const Area* area = process_.find(lookup);
    if (area == nullptr || !area->module || area->module->machine() != hit_.machine) return false;
    const auto at = linked(*area, lookup);
    return at && area->module->returns_at_once(*at);
  }
  /// All registers are the caller's again. Rules still tell where on the stack they were kept, which is below the stack
  /// pointer by then.
  FrameStep return_at_once() {
    if (!return_from_entry()) return FrameStep::lost_value;
    outermost_ = registers_.pc == 0;
    return outermost_ ? FrameStep::outermost : FrameStep::taken;
  }
  bool return_from_entry() {
    auto& stack_pointer = registers_.values[numbers_.stack_pointer];
    if (!stack_pointer) return false;
    const auto back = numbers_.link ? registers_.values[*numbers_.link] : memory_.read(*stack_pointer, arch_.word_size);
    if (!back) return false;
    registers_.pc = as_address(*back);
    *stack_pointer += arch_.entry_frame;
    return true;
  }
  /// Behind a function without rules nobody knows what is in them.
  void forget_registers() { registers_.values.fill(std::nullopt); }

  [[nodiscard]] bool keeps_frame_pointer(std::uint64_t lookup) { return base_at(lookup) == numbers_.frame_pointer; }
  /// Whether a walk by frame pointers leaves out this function's caller, because its frame has another base. Only where
  /// the file's rules say so.
  [[nodiscard]] bool loses_caller(std::uint64_t lookup) {
    const auto base = base_at(lookup);
    return base && *base != numbers_.frame_pointer;
  }
  [[nodiscard]] std::optional<unsigned> base_at(std::uint64_t lookup) {
    const Area* area = process_.find(lookup);
    locate::CallFrames* rules = rules_of(area);
    const auto at = rules != nullptr ? linked(*area, lookup) : std::nullopt;
    return at ? rules->base_at(*at) : std::nullopt;
  }

  /// The first address of the kernel's chain that `taken` steps by rules did not lead to. It begins with the hit. At a
  /// function's `push %rbp` or endbr64 the kernel adds the caller (since 6.11, is_uprobe_at_func_entry() in
  /// arch/x86/events/core.c).
  [[nodiscard]] std::size_t join_at(unsigned taken) {
    const auto& chain = stack_.addresses;
    if (taken == 0 || chain.size() < 2) return 1;
    const auto base = registers_.values[numbers_.frame_pointer];
    const auto next = base ? memory_.read(frame_record(*base) + arch_.word_size, arch_.word_size) : std::nullopt;
    const auto first_caller = std::ranges::find_if(walked_.steps, &Step::return_address);
    const bool added = first_caller != walked_.steps.end() && first_caller->address == chain[1];
    if (next && chain[1] == as_address(*next) && !(added && chain.size() > 2 && chain[2] == as_address(*next)))
      return 1;
    return added ? 2 : 1;
  }

  Process& process_;
  const RecordedStack& stack_;
  const Hit& hit_;
  const arch::Arch& arch_;
  const arch::FrameNumbers& numbers_;
  Memory memory_;
  std::uint32_t most_;
  std::uint32_t frames_ = 0;
  locate::FrameRegisters registers_;
  Walked walked_;
  bool signal_ = false;
  bool has_rule_ = false;
  bool outermost_ = false;
};

}  // namespace

Walked walk_stack(Process& process, const RecordedStack& stack, const EventLayout& layout, const Hit& hit) {
  if (stack.registers.empty()) return {};
  Walk walk(process, stack, layout, hit);
  return layout.user_stack_method == StackMethod::frame_pointers ? walk.by_frame_pointers() : walk.by_call_frames();
}

Walked walk_chain(Process& process, const TableStack& stack, const Hit& hit, bool adds_caller) {
  const RecordedStack recorded{.addresses = stack.addresses};
  EventLayout layout;
  layout.user_stack_depth = static_cast<std::uint32_t>(stack.addresses.size() + (stack.cut ? 0 : 2));
  return Walk(process, recorded, layout, hit).by_chain(stack, adds_caller);
}

}  // namespace usdt::stack
