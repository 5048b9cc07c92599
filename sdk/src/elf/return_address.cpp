// SPDX-License-Identifier: BSD-2-Clause
#include "elf/return_address.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>

#include "arch/instructions.hpp"
#include "arch/stack_use.hpp"
#include "elf/elf_impl.hpp"

namespace usdt::elf {
namespace {

/// Keeps track of the stack pointer on the way through a function's code, by addresses.
class StackDepth {
 public:
  explicit StackDepth(Machine machine) : machine_(machine) {}

  /// Goes behind the instruction at `at` of `code`.
  void pass(ByteView code, std::uint64_t at, const arch::Instruction& instruction);
  [[nodiscard]] bool reads() const noexcept { return reads_; }
  [[nodiscard]] bool may_read() const noexcept { return may_read_; }

 private:
  void look(const arch::StackUse& use);
  void move(const arch::StackUse& use);

  Machine machine_;
  std::optional<std::int64_t> depth_ = 0;                       ///< bytes from the stack pointer to the return address
  std::optional<std::int64_t> frame_;                           ///< the same from the frame pointer, once it was set
  std::map<std::uint64_t, std::optional<std::int64_t>> ahead_;  ///< depths where jumps lead
  bool reads_ = false;
  bool may_read_ = false;
};

void StackDepth::look(const arch::StackUse& use) {
  reads_ |= use.reads_return_register;
  reads_ |= use.reads_above_stack && depth_ == use.reads_above_stack;
  reads_ |= use.reads_above_frame && frame_ && frame_ == use.reads_above_frame;
  may_read_ |= reads_ || (use.reads_above_stack && !depth_) || use.sets_stack;
}

void StackDepth::move(const arch::StackUse& use) {
  if (use.sets_frame) frame_ = depth_;
  if (use.leaves_frame)
    depth_ = frame_ ? std::optional(*frame_ - use.leaves_frame) : std::nullopt;
  else if (use.sets_stack || use.aligns_stack)
    depth_.reset();
  else if (depth_)
    *depth_ += use.grows;
}

void StackDepth::pass(ByteView code, std::uint64_t at, const arch::Instruction& instruction) {
  if (const auto known = ahead_.find(at); known != ahead_.end()) depth_ = known->second;
  const arch::StackUse use = arch::stack_use(machine_, code.subspan(at));
  look(use);
  move(use);
  if (instruction.target && instruction.flow != arch::Flow::call)
    ahead_.try_emplace(at + static_cast<std::uint64_t>(*instruction.target), depth_);
  if (instruction.flow == arch::Flow::jump || instruction.flow == arch::Flow::ret) depth_.reset();
}

}  // namespace

namespace {

/// Returns what the function that has `entry` does from there on; nothing: none is known there (an entry of a PLT).
std::optional<FunctionFlow> flow_from(const ElfFile& file, VirtAddr entry, const FunctionPieces& pieces) {
  const auto place = pieces.function_at(entry);
  if (!place) return std::nullopt;
  const std::uint64_t before = entry.value - place->address.value;
  Function function;
  function.address = entry;
  function.size = place->size - before;
  std::vector<CodePart> others;
  if (before != 0) others.push_back({.address = place->address, .size = before});
  auto flow = flow_of(file, function, &pieces, others);
  return flow ? std::optional(*std::move(flow)) : std::nullopt;
}

}  // namespace

OthersReturns others_returns(const ElfFile& file, const FunctionFlow& flow, const FunctionPieces& pieces) {
  constexpr std::size_t most_functions = 16;
  constexpr std::size_t most_returns = 48;
  OthersReturns found{.returns = {}, .all = flow.jumps_by_value == 0};
  std::set<VirtAddr> returns;
  std::set<VirtAddr> seen;
  std::vector<VirtAddr> ahead = flow.away;
  while (!ahead.empty()) {
    const VirtAddr entry = ahead.back();
    ahead.pop_back();
    if (!seen.insert(entry).second) continue;
    const auto next = seen.size() > most_functions ? std::nullopt : flow_from(file, entry, pieces);
    if (!next || returns.size() + next->returns.size() > most_returns) {
      found.all = false;
      continue;
    }
    found.all &= next->jumps_by_value == 0;
    returns.insert(next->returns.begin(), next->returns.end());
    ahead.insert(ahead.end(), next->away.begin(), next->away.end());
  }
  for (const VirtAddr own : flow.returns) returns.erase(own);
  found.returns.assign(returns.begin(), returns.end());
  return found;
}

const ReturnAddresses::Looked& ReturnAddresses::look(const Function& function) {
  const auto [known, fresh] = looked_.try_emplace(function.address);
  Looked& looked = known->second;
  if (!fresh) return looked;
  const OpenedFile& opened = *Inside::of(file_);
  const auto flow = flow_of(file_, function, &pieces_);
  const auto offset = code_offset(opened.image, function.address);
  looked.leads_out = !flow || !offset || flow->calls_by_value || flow->calls_kernel || flow->jumps_by_value > 0;
  if (!flow || !offset) return looked;
  looked.called = flow->called;
  looked.away = flow->away;
  const Bytes code =
      opened.file.bytes(offset->value, std::min(function.size, code_bytes_from(opened.image, function.address)));
  StackDepth depth(file_.machine());
  for (std::uint64_t at = 0; at < code.size();) {
    const auto instruction = arch::decode_instruction(file_.machine(), ByteView(code).subspan(at));
    if (instruction.size == 0) break;
    depth.pass(code, at, instruction);
    at += instruction.size;
  }
  looked.reads = depth.reads();
  looked.may_read = depth.may_read();
  return looked;
}

/// Null: no function begins there that is known (an entry of a PLT has no symbol).
const ReturnAddresses::Looked* ReturnAddresses::look_at(VirtAddr entry) {
  const auto place = pieces_.function_at(entry);
  if (!place || place->address != entry) return nullptr;
  Function function;
  function.address = entry;
  function.size = place->size;
  return &look(function);
}

bool ReturnAddresses::nobody_looks(const Function& function) {
  std::set<VirtAddr> seen{function.address};
  std::vector<const Looked*> ahead{&look(function)};
  while (!ahead.empty()) {
    const Looked& looked = *ahead.back();
    ahead.pop_back();
    if (looked.leads_out || looked.may_read) return false;
    for (const auto* list : {&looked.called, &looked.away}) {
      for (const VirtAddr target : *list) {
        if (!seen.insert(target).second) continue;
        const Looked* const next = seen.size() > kMost ? nullptr : look_at(target);
        if (next == nullptr) return false;
        ahead.push_back(next);
      }
    }
  }
  return true;
}

bool ReturnAddresses::is_read(const Function& function) {
  std::set<VirtAddr> seen{function.address};
  std::vector<const Looked*> ahead{&look(function)};
  while (!ahead.empty()) {
    const Looked& looked = *ahead.back();
    ahead.pop_back();
    if (looked.reads) return true;
    for (const VirtAddr target : looked.away) {
      if (seen.size() > kMost || !seen.insert(target).second) continue;
      if (const Looked* const next = look_at(target)) ahead.push_back(next);
    }
  }
  return false;
}

}  // namespace usdt::elf
