// SPDX-License-Identifier: BSD-2-Clause
// Where programs can run when a function returns, by its instructions or by the kernel's return probes.
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
#include "find/function_finder.hpp"
#include "find/some_of.hpp"

namespace usdt::find {
namespace {

bool looks_at_caller(const Function& function) {
  return elf::is_who_looks_at_caller(function.symbol) ||
         std::ranges::any_of(function.aliases, elf::is_who_looks_at_caller);
}

/// What begins otherwise than a function does: there is no return address on top of the stack, and the kernel would
/// overwrite something else with its own (argc at _start, what the dynamic linker's resolver is given, a signal frame).
/// vfork() keeps it in a register while its child uses the stack.
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

void FunctionFinder::follow_code(FunctionPoint& point, const Function& function, const Known& known,
                                 std::optional<bool> ret_probes) {
  if (const auto target = known.go ? std::nullopt : comes_back_to(point, function, known))
    count_calls_alone(point, function, *target);
  const bool returns = point.moment != Moment::entry && point.refused.empty();
  if (!known.go && !returns) return;
  if (returns && point.returns == ReturnBy::probe && ret_probes == false) {
    point.refused = why_not_by_kernel(function);
    if (point.refused.empty() && may_be_left_by_exceptions()) exceptions_end_.push_back(function.name);
    return;
  }
  const auto flow = flow_of(function, known);
  if (flow && known.go && flow->checked) place(point, *flow->checked);
  if (!returns) return;
  if (point.returns == ReturnBy::probe)
    choose_returns(point, function, flow);
  else
    take_returns(point, function, flow);
}

std::uint8_t FunctionFinder::patch_room_before(VirtAddr pc) {
  if (pc.value < arch::kLongestPatchRoom) return 0;
  const elf::Code code = code_.at(VirtAddr(pc.value - arch::kLongestPatchRoom));
  return arch::patch_room(file_.elf->machine(), std::span(code.bytes.data).first(code.bytes.size));
}

std::optional<VirtAddr> FunctionFinder::comes_back_to(const FunctionPoint& point, const Function& function,
                                                      const Known& known) {
  if (!point.refused.empty()) return std::nullopt;
  if (repeats(point)) return point.pc;
  if (!elf::may_jump_to(*file_.elf, function, function.address, point.pc)) return std::nullopt;
  // The jump over the room for patches is no way back.
  Function code = function;
  if (patch_room_before(point.pc) != 0) {
    code.address = point.pc;
    code.size -= std::min(function.size, point.pc.value - function.address.value);
    if (!elf::may_jump_to(*file_.elf, code, function.address, point.pc)) return std::nullopt;
  }
  const auto flow = flow_of(code, known);
  if (!flow) return std::nullopt;
  std::optional<VirtAddr> first;
  for (const VirtAddr target : flow->targets)
    if (target >= function.address && target <= point.pc) first = std::min(first.value_or(target), target);
  return first;
}

bool FunctionFinder::repeats(const FunctionPoint& point) const {
  const Machine machine = file_.elf->machine();
  const std::span bytes(point.bytes.data.data(), point.bytes.size);
  return arch::knows_instructions(machine) && !bytes.empty() && arch::decode_instruction(machine, bytes).repeats;
}

void FunctionFinder::count_calls_alone(FunctionPoint& point, const Function& function, VirtAddr comes_back_to) {
  if (comes_back_to != function.address) {
    point.moved = 0;
    return place(point, function.address);
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
      begin_with_loops_.push_back(function.name);
  }
}

const elf::FunctionPieces& FunctionFinder::pieces() {
  if (!pieces_) pieces_.emplace(*file_.elf, stop_);
  return *pieces_;
}

Result<elf::FunctionFlow> FunctionFinder::flow_of(const Function& function, const Known& known) {
  return elf::flow_of(*file_.elf, function, known.go ? nullptr : &pieces(), known.elsewhere);
}

void FunctionFinder::move_to_cheaper_start(FunctionPoint& point, const Function& function, const Known& known) {
  if (point.site_class != SiteClass::single_step || go_ || !known.signature->typed || !point.refused.empty()) return;
  const auto there = elf::emulated_start(*file_.elf, function, &pieces(), point.pc);
  if (!there) return;
  point.moved = static_cast<std::uint8_t>(there->value - point.pc.value);
  place(point, *there);
}

void FunctionFinder::take_returns(FunctionPoint& point, const Function& function,
                                  const Result<elf::FunctionFlow>& flow) {
  auto rets = flow ? rets_of(*flow) : fail(flow.error());
  if (!rets) {
    point.refused = std::move(rets.error().message);
    return;
  }
  point.rets = *std::move(rets);
  if (point.moment == Moment::exit) count_rets_of(function);
  if (flow->jumps_away > 0) unseen_.push_back({function.name, flow->jumps_away});
}

Result<std::vector<FileOffset>> FunctionFinder::rets_of(const elf::FunctionFlow& flow) {
  if (flow.returns.empty())
    return fail(ErrorKind::not_supported, "it has no RET instruction: it never returns, or by other functions");
  std::vector<FileOffset> rets;
  for (const VirtAddr at : flow.returns) {
    const elf::Code code = code_.at(at);
    const std::span bytes(code.bytes.data.data(), code.bytes.size);
    if (const auto why = arch::uprobe_refusal(file_.elf->machine(), bytes); !why.empty() || !code.offset)
      return fail(ErrorKind::not_supported,
                  fmt::format("no probe can be put on its RET instruction at {:#x}: {}", at.value, why));
    rets.push_back(*code.offset);
  }
  return rets;
}

void FunctionFinder::choose_returns(FunctionPoint& point, const Function& function,
                                    const Result<elf::FunctionFlow>& flow) {
  auto rets = flow ? rets_of(*flow) : fail(flow.error());
  const bool sees_all = rets && flow->returns_itself();
  const bool may_end_elsewhere = flow && !sees_all && point.moment == Moment::both && !flow->away.empty();
  if (may_end_elsewhere && take_others_returns(point, function, *flow)) return;
  if (!sees_all && may_take_kernels(function) && why_not_by_kernel(function).empty()) {
    by_kernel_.push_back(function.name);
  } else if (rets) {
    point.returns = ReturnBy::instruction;
    point.rets = *std::move(rets);
    if (point.moment == Moment::exit) count_rets_of(function);
    if (!sees_all) unseen_.push_back({function.name, flow->jumps_away});
  } else {
    point.refused = why_not_by_kernel(function);
    if (!point.refused.empty()) return;
    point.refused = fmt::format(
        "{}; --no-ret-probes takes the kernel's return probe, with which an exception that leaves it, or a change of "
        "stacks in it, ends the program, and what looks for its caller finds another one",
        rets.error().message);
  }
}

bool FunctionFinder::take_others_returns(FunctionPoint& point, const Function& function,
                                         const elf::FunctionFlow& flow) {
  elf::OthersReturns others = elf::others_returns(*file_.elf, flow, pieces());
  if (others.returns.empty() || (!others.all && may_take_kernels(function) && why_not_by_kernel(function).empty()))
    return false;
  elf::FunctionFlow all = flow;
  std::ranges::move(others.returns, std::back_inserter(all.returns));
  auto rets = rets_of(all);
  if (!rets) return false;
  point.returns = ReturnBy::any_instruction;
  point.rets = *std::move(rets);
  if (!others.all) unseen_.push_back({function.name, flow.jumps_away});
  return true;
}

bool FunctionFinder::may_take_kernels(const Function& function) {
  if (is_plain_program()) return true;
  if (!arch::knows_instructions(file_.elf->machine())) return !may_be_left_by_exceptions() && !may_switch_stacks();
  return return_addresses().nobody_looks(function);
}

std::string FunctionFinder::why_not_by_kernel(const Function& function) {
  if (!pieces().may_begin_at(function.address)) return kBeginsNowhere;
  if (looks_at_caller(function)) return kLooksAtCaller;
  const bool is_read = arch::knows_instructions(file_.elf->machine()) && return_addresses().is_read(function);
  return is_read ? kLooksAtCaller : std::string();
}

bool FunctionFinder::is_plain_program() {
  if (!plain_)
    plain_ = !go_ && elf::is_program_that_looks_at_no_caller(elf::Inside::of(*file_.elf)->file, image()) &&
             !may_be_left_by_exceptions() && !may_switch_stacks();
  return *plain_;
}

elf::ReturnAddresses& FunctionFinder::return_addresses() {
  if (!return_addresses_) return_addresses_.emplace(*file_.elf, pieces());
  return *return_addresses_;
}

void FunctionFinder::count_rets_of(const Function& function) {
  counted_by_rets_.emplace(function.address, std::pair(function.size, function.name));
}

void FunctionFinder::tell_of_others_returns() {
  std::vector<elf::CodePart> parts;
  for (const auto& [address, known] : counted_by_rets_) parts.push_back({.address = address, .size = known.first});
  std::set<std::string> into;
  std::map<VirtAddr, std::vector<VirtAddr>> leads_of;  // where those functions lead that may lead into one
  for (const elf::Lead& lead : elf::leads_into(*file_.elf, parts)) {
    const auto from = pieces().function_at(lead.from);
    if (!from || !pieces().may_begin_at(from->address) || pieces().clone_at(from->address)) continue;
    const auto [known, fresh] = leads_of.try_emplace(from->address);
    if (fresh) {
      Function function;
      function.address = from->address;
      function.size = from->size;
      if (auto flow = elf::flow_of(*file_.elf, function, &pieces())) {
        known->second = std::move(flow->targets);
        std::ranges::copy(flow->called, std::back_inserter(known->second));
      }
    }
    if (std::ranges::find(known->second, lead.to) != known->second.end())
      into.insert(std::prev(counted_by_rets_.upper_bound(lead.to))->second.second);
  }
  if (!into.empty())
    file_.warnings.push_back(
        {{},
         fmt::format("other functions lead into the midst of {}, and return by its RET instructions: such returns are "
                     "hits, too; ucall: counts its calls alone",
                     some_of({into.begin(), into.end()}))});
}

bool FunctionFinder::may_be_left_by_exceptions() {
  if (!unwinds_) unwinds_ = elf::may_unwind(elf::Inside::of(*file_.elf)->file, image());
  return *unwinds_;
}

bool FunctionFinder::may_switch_stacks() {
  if (!switches_) switches_ = elf::may_switch_stacks(elf::Inside::of(*file_.elf)->file, image());
  return *switches_;
}

void FunctionFinder::tell_of_code() {
  const auto tell = [this](std::string text) { file_.warnings.push_back({{}, std::move(text)}); };
  if (!begin_with_loops_.empty())
    tell(
        fmt::format("a loop begins with the first instruction of {}: a hit is a call or a round; uretprobe: counts the "
                    "calls",
                    some_of(begin_with_loops_)));
  tell_of_others_returns();
  if (!repeat_.empty())
    tell(fmt::format("the instruction at {} repeats itself (rep movs and the like): a hit is a round of it",
                     some_of(repeat_)));
  if (unseen_.size() == 1) {
    const auto& [name, jumps] = unseen_.front();
    tell(fmt::format("{}: jumps to {}, which return{} in its place unseen", name,
                     jumps > 0 ? fmt::format("other functions ({} times)", jumps) : "what a register or memory says",
                     jumps > 0 ? "" : "s"));
  } else if (!unseen_.empty()) {
    std::vector<std::string> names;
    for (const auto& each : unseen_) names.push_back(each.first);
    tell(fmt::format("{}: jump to other functions, which return in their place unseen", some_of(std::move(names))));
  }
  if (!by_kernel_.empty())
    tell(
        fmt::format("{}: the kernel's return probe changes the return address, since not each return is a RET "
                    "instruction; a program that switches stacks there (coroutines, fibers), or has an exception pass "
                    "by, dies of it, and what looks for its caller there (a backtrace, dlsym(RTLD_NEXT)) finds another "
                    "one; with --ret-probes it does not",
                    some_of(by_kernel_)));
  if (!exceptions_end_.empty())
    tell(
        fmt::format("an exception that leaves {} ends the program, since the kernel's return probes hide its callers; "
                    "without --no-ret-probes it does not",
                    some_of(exceptions_end_)));
}

std::string FunctionFinder::why_no_returns(const Function& function, const FunctionPoint& point) const {
  const bool is_entry_point = image().entry == function.address.value;
  if (point.moment == Moment::both && point.returns == ReturnBy::goroutine_ret && !go_->by_registers)
    return fmt::format(
        "built by {}: the goroutine, by which the ends of a call are told, is known of Go 1.18 and later",
        go_version());
  if (is_cold_half(function.symbol))
    return "it is the unlikely half of another function, which jumps there: it has no return of its own";
  if (point.returns != ReturnBy::probe) return {};
  if (is_entry_point || has_no_return_address(function))
    return "it is not called as a function: the kernel would overwrite what is not a return address";
  return {};
}

}  // namespace usdt::find
