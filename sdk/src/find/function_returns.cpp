// SPDX-License-Identifier: BSD-2-Clause
#include "find/function_returns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "arch/arch.hpp"
#include "arch/instructions.hpp"
#include "arch/patch_room.hpp"
#include "base/symbol_name.hpp"
#include "elf/emulated_start.hpp"
#include "elf/led_to.hpp"
#include "elf/unwinding.hpp"
#include "find/some_of.hpp"

namespace usdt::find {
namespace {

bool looks_at_caller(const Function& function) {
  return elf::is_who_looks_at_caller(function.symbol) ||
         std::ranges::any_of(function.aliases, elf::is_who_looks_at_caller);
}

/// Whether a function begins without a return address on top of the stack: the kernel would overwrite something else
/// with its own (argc at _start, an argument of the dynamic linker's resolver, a signal frame). vfork() keeps it in a
/// register while its child uses the stack.
bool has_no_return_address(const Function& function) {
  static constexpr std::string_view names[] = {"_start",  "_dl_start_user", "__restore_rt", "__restore",
                                               "__vfork", "vfork",          "__libc_vfork", "__kernel_rt_sigreturn",
                                               "__clone", "clone",          "clone3",       "__clone3"};
  const auto is_one = [](std::string_view symbol) {
    return std::ranges::find(names, symbol) != std::end(names) || symbol.starts_with("_dl_runtime_resolve") ||
           symbol.starts_with("_dl_runtime_profile");
  };
  return is_one(function.symbol) || std::ranges::any_of(function.aliases, is_one);
}

constexpr const char* kLooksAtCaller =
    "it looks at its return address, in whose place the kernel's return probe puts its own";
constexpr const char* kBeginsNowhere =
    "no function begins there, as symbols say: the kernel would overwrite what is not a return address";

}  // namespace

void FunctionReturns::follow_code(FunctionPoint& point, const Function& function, const KnownFunction& known,
                                  std::optional<bool> ret_probes) {
  if (const auto target = known.go ? std::nullopt : comes_back_to(point, function, known))
    count_calls_alone(point, function, *target);
  const bool returns = point.moment != Moment::entry && point.refused.empty();
  if (!known.go && !returns) return;
  if (returns && point.returns == ReturnBy::probe && ret_probes == false) {
    point.refused = why_not_by_kernel(function);
    if (point.refused.empty() && code_.may_be_left_by_exceptions()) notices_.add_ended_by_exceptions(function.name);
    return;
  }
  const auto flow = flow_of(function, known);
  if (flow && known.go && flow->checked) place(code_, point, *flow->checked);
  if (!returns) return;
  if (point.returns == ReturnBy::probe)
    choose_returns(point, function, flow);
  else
    take_returns(point, function, flow);
}

std::optional<VirtAddr> FunctionReturns::comes_back_to(const FunctionPoint& point, const Function& function,
                                                       const KnownFunction& known) {
  if (!point.refused.empty()) return std::nullopt;
  if (repeats(code_, point)) return point.pc;
  if (!elf::may_jump_to(code_.elf(), function, function.address, point.pc)) return std::nullopt;
  // The jump over the room for patches is no way back.
  Function code = function;
  if (patch_room_before(code_, point.pc) != 0) {
    code.address = point.pc;
    code.size -= std::min(function.size, point.pc.value - function.address.value);
    if (!elf::may_jump_to(code_.elf(), code, function.address, point.pc)) return std::nullopt;
  }
  const auto flow = flow_of(code, known);
  if (!flow) return std::nullopt;
  std::optional<VirtAddr> first;
  for (const VirtAddr target : flow->targets)
    if (target >= function.address && target <= point.pc) first = std::min(first.value_or(target), target);
  return first;
}

void FunctionReturns::count_calls_alone(FunctionPoint& point, const Function& function, VirtAddr comes_back_to) {
  if (comes_back_to != function.address) {
    point.moved = 0;
    return place(code_, point, function.address);
  }
  switch (point.moment) {
    case Moment::exit:
      if (point.returns == ReturnBy::probe) point.returns = ReturnBy::instruction;
      return;
    case Moment::both:
      point.refused =
          "a loop begins with its first instruction, where a call and a round look alike: uretprobe: counts its calls";
      return;
    case Moment::entry:
      notices_.add_loop(function.name);
  }
}

Result<elf::FunctionFlow> FunctionReturns::flow_of(const Function& function, const KnownFunction& known) {
  return elf::flow_of(code_.elf(), function, known.go ? nullptr : &code_.pieces(), known.elsewhere);
}

void FunctionReturns::move_to_cheaper_start(FunctionPoint& point, const Function& function,
                                            const KnownFunction& known) {
  if (point.site_class != SiteClass::single_step || code_.go() || !known.signature->typed || !point.refused.empty())
    return;
  const auto there = elf::emulated_start(code_.elf(), function, &code_.pieces(), point.pc);
  if (!there) return;
  point.moved = static_cast<std::uint8_t>(there->value - point.pc.value);
  place(code_, point, *there);
}

void FunctionReturns::take_returns(FunctionPoint& point, const Function& function,
                                   const Result<elf::FunctionFlow>& flow) {
  auto rets = flow ? rets_of(*flow) : fail(flow.error());
  if (!rets) {
    point.refused = std::move(rets.error().message);
    return;
  }
  point.rets = *std::move(rets);
  if (point.moment == Moment::exit) notices_.add_counted_by_rets(function);
  if (flow->jumps_away > 0) notices_.add_unseen(function.name, flow->jumps_away);
}

Result<std::vector<FileOffset>> FunctionReturns::rets_of(const elf::FunctionFlow& flow) {
  if (flow.returns.empty())
    return fail(ErrorKind::not_supported, "it has no RET instruction: it never returns, or by other functions");
  std::vector<FileOffset> rets;
  for (const VirtAddr at : flow.returns) {
    const elf::Code code = code_.at(at);
    const std::span bytes(code.bytes.data.data(), code.bytes.size);
    if (const auto why = arch::uprobe_refusal(code_.machine(), bytes); !why.empty() || !code.offset)
      return fail(ErrorKind::not_supported,
                  fmt::format("no probe can be put on its RET instruction at {:#x}: {}", at.value, why));
    rets.push_back(*code.offset);
  }
  return rets;
}

void FunctionReturns::choose_returns(FunctionPoint& point, const Function& function,
                                     const Result<elf::FunctionFlow>& flow) {
  auto rets = flow ? rets_of(*flow) : fail(flow.error());
  const bool sees_all = rets && flow->returns_itself();
  const bool may_end_elsewhere = flow && !sees_all && point.moment == Moment::both && !flow->away.empty();
  if (may_end_elsewhere && take_others_returns(point, function, *flow)) return;
  if (!sees_all && may_take_kernels(function) && why_not_by_kernel(function).empty()) {
    notices_.add_by_kernel(function.name);
  } else if (rets) {
    point.returns = ReturnBy::instruction;
    point.rets = *std::move(rets);
    if (point.moment == Moment::exit) notices_.add_counted_by_rets(function);
    if (!sees_all) notices_.add_unseen(function.name, flow->jumps_away);
  } else {
    point.refused = why_not_by_kernel(function);
    if (!point.refused.empty()) return;
    point.refused = fmt::format(
        "{}; --no-ret-probes takes the kernel's return probe, with which an exception that leaves it, or a change of "
        "stacks in it, ends the program, and what looks for its caller finds another one",
        rets.error().message);
  }
}

bool FunctionReturns::take_others_returns(FunctionPoint& point, const Function& function,
                                          const elf::FunctionFlow& flow) {
  elf::OthersReturns others = elf::others_returns(code_.elf(), flow, code_.pieces());
  if (others.returns.empty() || (!others.all && may_take_kernels(function) && why_not_by_kernel(function).empty()))
    return false;
  elf::FunctionFlow all = flow;
  std::ranges::move(others.returns, std::back_inserter(all.returns));
  auto rets = rets_of(all);
  if (!rets) return false;
  point.returns = ReturnBy::any_instruction;
  point.rets = *std::move(rets);
  if (!others.all) notices_.add_unseen(function.name, flow.jumps_away);
  return true;
}

bool FunctionReturns::may_take_kernels(const Function& function) {
  if (code_.is_plain_program()) return true;
  if (!arch::knows_instructions(code_.machine()))
    return !code_.may_be_left_by_exceptions() && !code_.may_switch_stacks();
  return code_.return_addresses().nobody_looks(function);
}

std::string FunctionReturns::why_not_by_kernel(const Function& function) {
  if (!code_.pieces().may_begin_at(function.address)) return kBeginsNowhere;
  if (looks_at_caller(function)) return kLooksAtCaller;
  const bool is_read = arch::knows_instructions(code_.machine()) && code_.return_addresses().is_read(function);
  return is_read ? kLooksAtCaller : std::string();
}

std::string FunctionReturns::why_no_returns(const Function& function, const FunctionPoint& point) const {
  const bool is_entry_point = code_.image().entry == function.address.value;
  if (point.moment == Moment::both && point.returns == ReturnBy::goroutine_ret && !code_.go()->by_registers)
    return fmt::format(
        "built by {}: the goroutine, by which the ends of a call are told, is known of Go 1.18 and later",
        code_.go_version());
  if (is_cold_half(function.symbol))
    return "it is the unlikely half of another function, which jumps there: it has no return of its own";
  if (point.returns != ReturnBy::probe) return {};
  if (is_entry_point || has_no_return_address(function))
    return "it is not called as a function: the kernel would overwrite what is not a return address";
  return {};
}

}  // namespace usdt::find
