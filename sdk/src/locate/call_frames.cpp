// SPDX-License-Identifier: BSD-2-Clause
#include "locate/call_frames.hpp"

#include <dwarf.h>

#include <algorithm>
#include <cstdlib>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/try.hpp"
#include "dwarf/dwarf_file.hpp"
#include "locate/entries.hpp"
#include "locate/frame.hpp"
#include "locate/operation.hpp"

namespace usdt::locate {
namespace {

/// Rows that are remembered; a program's stacks go through some thousands of call sites.
constexpr std::size_t kMostRows = 1 << 16;
/// Operations of one expression, and how deep its stack is: those of signal frames and PLTs have some ten.
constexpr unsigned kMostOperations = 512;
constexpr std::size_t kDeepestStack = 64;

struct Free {
  void operator()(Dwarf_Frame* frame) const noexcept { std::free(frame); }
};

using Expression = std::vector<Dwarf_Op>;

struct Rule {
  unsigned reg = 0;
  bool undefined = false;
  Expression where;
};

/// The rules of the call-frame information for one address.
struct Row {
  bool known = false;
  bool signal = false;
  unsigned return_column = 0;
  Expression cfa;
  std::vector<Rule> rules;  ///< of registers that do not stay as they are

  [[nodiscard]] const Rule* find(unsigned reg) const {
    const auto found = std::ranges::find(rules, reg, &Rule::reg);
    return found == rules.end() ? nullptr : &*found;
  }
};

/// One expression with the numbers of a frame.
class Evaluation {
 public:
  Evaluation(const FrameRegisters& registers, const CallFrames::Memory& memory, unsigned word_size,
             std::optional<std::uint64_t> cfa)
      : registers_(registers), memory_(memory), word_size_(word_size), cfa_(cfa) {}

  /// The value on top of the stack when the expression ends.
  [[nodiscard]] std::optional<std::uint64_t> top(const Expression& all) {
    unsigned left = kMostOperations;
    for (std::size_t i = 0; i < all.size() && ok_; ++i) {
      if (left-- == 0) return std::nullopt;
      const Dwarf_Op& op = all[i];
      if (op.atom == DW_OP_skip || (op.atom == DW_OP_bra && pop() != 0)) {
        const auto target = std::ranges::find(all, op.offset + 3 + op.number, &Dwarf_Op::offset);
        if (target == all.end()) return std::nullopt;
        i = static_cast<std::size_t>(target - all.begin()) - 1;
        continue;
      }
      apply(op);
    }
    return ok_ && !stack_.empty() ? std::optional(cut(stack_.back())) : std::nullopt;
  }
  /// The value of a register by its rule: what is at that place, or the value itself.
  [[nodiscard]] std::optional<std::uint64_t> value(const Expression& all) {
    const auto found = top(all);
    if (!found || is_value_) return found;
    return memory_(*found, word_size_);
  }

 private:
  [[nodiscard]] std::uint64_t cut(std::uint64_t word) const noexcept {
    return word_size_ == 4 ? word & 0xffffffff : word;
  }
  void push(std::optional<std::uint64_t> word) {
    ok_ = ok_ && word && stack_.size() < kDeepestStack;
    if (ok_) stack_.push_back(cut(*word));
  }
  std::uint64_t pop() {
    if (stack_.empty()) ok_ = false;
    if (!ok_) return 0;
    const std::uint64_t word = stack_.back();
    stack_.pop_back();
    return word;
  }
  void push_below(std::uint64_t depth) {
    depth < stack_.size() ? push(stack_[stack_.size() - 1 - depth]) : push(std::nullopt);
  }
  [[nodiscard]] std::optional<std::uint64_t> reg(std::uint64_t number) const {
    return number < FrameRegisters::most ? registers_.values[number] : std::nullopt;
  }
  [[nodiscard]] std::int64_t as_signed(std::uint64_t word) const noexcept {
    return word_size_ == 4 ? static_cast<std::int32_t>(word) : static_cast<std::int64_t>(word);
  }

  void apply(const Dwarf_Op& op) {
    const Operation what = operation_of(op, word_size_);
    switch (what.kind) {
      case Operation::Kind::constant:
        return push(what.number);
      case Operation::Kind::sum:
        return push_sum(what.reg, what.number);
      case Operation::Kind::reg:
        return push_register(what.reg);
      case Operation::Kind::load:
        return load(what.number);
      case Operation::Kind::other:
        return compute(op);
    }
  }
  void compute(const Dwarf_Op& op) {
    switch (op.atom) {
      case DW_OP_call_frame_cfa:
        return push(cfa_);
      case DW_OP_stack_value:
        is_value_ = true;
        return;
      case DW_OP_nop:
      case DW_OP_bra:  // not taken
        return;
      case DW_OP_plus_uconst:
        return push(pop() + op.number);
      case DW_OP_dup:
        return push_below(0);
      case DW_OP_over:
        return push_below(1);
      case DW_OP_pick:
        return push_below(op.number);
      case DW_OP_drop:
        pop();
        return;
      case DW_OP_neg:
        return push(-pop());
      case DW_OP_not:
        return push(~pop());
      default:
        return binary(op.atom);
    }
  }
  void load(std::uint64_t size) {
    const bool is_size = size >= 1 && size <= word_size_;
    push(is_size ? memory_(pop(), static_cast<unsigned>(size)) : std::nullopt);
  }
  void push_sum(std::uint64_t number, std::uint64_t displacement) {
    const auto base = reg(number);
    push(base ? std::optional(*base + displacement) : std::nullopt);
  }
  /// The register itself is the place: its value is what is there.
  void push_register(std::uint64_t number) {
    is_value_ = true;
    push(reg(number));
  }

  void binary(std::uint8_t atom) {
    const std::uint64_t b = pop();
    const std::uint64_t a = pop();
    switch (atom) {
      case DW_OP_swap:
        push(b);
        return push(a);
      case DW_OP_and:
        return push(a & b);
      case DW_OP_or:
        return push(a | b);
      case DW_OP_xor:
        return push(a ^ b);
      case DW_OP_plus:
        return push(a + b);
      case DW_OP_minus:
        return push(a - b);
      case DW_OP_mul:
        return push(a * b);
      case DW_OP_shl:
        return push(b < 64 ? a << b : 0);
      case DW_OP_shr:
        return push(b < 64 ? a >> b : 0);
      case DW_OP_shra:
        return push(static_cast<std::uint64_t>(as_signed(a) >> std::min<std::uint64_t>(b, 63)));
      case DW_OP_eq:
        return push(a == b);
      case DW_OP_ne:
        return push(a != b);
      case DW_OP_ge:
        return push(as_signed(a) >= as_signed(b));
      case DW_OP_gt:
        return push(as_signed(a) > as_signed(b));
      case DW_OP_le:
        return push(as_signed(a) <= as_signed(b));
      case DW_OP_lt:
        return push(as_signed(a) < as_signed(b));
      default:
        ok_ = false;  // what frames have no use for
    }
  }

  const FrameRegisters& registers_;
  const CallFrames::Memory& memory_;
  unsigned word_size_;
  std::optional<std::uint64_t> cfa_;
  std::vector<std::uint64_t> stack_;
  bool ok_ = true;
  bool is_value_ = false;
};

}  // namespace

struct CallFrames::Impl {
  std::shared_ptr<const elf::OpenedFile> opened;
  std::optional<elf::DebugFile> debug_file;
  arch::FrameNumbers numbers;
  unsigned word_size;
  DwarfFile code;   ///< .eh_frame
  DwarfFile debug;  ///< .debug_frame
  std::unique_ptr<Dwarf_CFI, CfiEnd> eh_frame;
  Dwarf_CFI* debug_frame = nullptr;  ///< of `debug`
  std::unordered_map<std::uint64_t, Row> rows;

  const Row& row_at(VirtAddr at) {
    if (const auto known = rows.find(at.value); known != rows.end()) return known->second;
    if (rows.size() >= kMostRows) rows.clear();
    return rows.emplace(at.value, read_row(at)).first->second;
  }

  [[nodiscard]] Row read_row(VirtAddr at) const {
    Row row;
    for (Dwarf_CFI* cfi : {eh_frame.get(), debug_frame}) {
      Dwarf_Frame* found = nullptr;
      if (cfi == nullptr || dwarf_cfi_addrframe(cfi, at.value, &found) != 0) continue;
      const std::unique_ptr<Dwarf_Frame, Free> frame(found);
      if (read_frame(found, row)) break;
      row = {};
    }
    return row;
  }

  [[nodiscard]] bool read_frame(Dwarf_Frame* frame, Row& row) const {
    Dwarf_Op* ops = nullptr;
    std::size_t count = 0;
    const int column = dwarf_frame_info(frame, nullptr, nullptr, &row.signal);
    if (column < 0 || dwarf_frame_cfa(frame, &ops, &count) != 0 || count == 0 || count > kMostOperations) return false;
    row.return_column = static_cast<unsigned>(column);
    row.cfa.assign(ops, ops + count);
    if (row.return_column >= numbers.count) return false;
    for (unsigned reg = 0; reg < numbers.count; ++reg) {
      Dwarf_Op room[3];
      if (dwarf_frame_register(frame, static_cast<int>(reg), room, &ops, &count) != 0) return false;
      if (count == 0 && ops == nullptr) continue;  // it stays as it is
      if (count > kMostOperations) return false;
      Rule& rule = row.rules.emplace_back();
      rule.reg = reg;
      rule.undefined = count == 0;
      if (count > 0) rule.where.assign(ops, ops + count);
    }
    row.known = true;
    return true;
  }
};

CallFrames::CallFrames(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
CallFrames::CallFrames(CallFrames&&) noexcept = default;
CallFrames& CallFrames::operator=(CallFrames&&) noexcept = default;
CallFrames::~CallFrames() = default;

Result<CallFrames> CallFrames::open(const ElfFile& file) {
  const auto& opened = elf::Inside::of(file);
  auto impl = std::make_unique<Impl>();
  impl->opened = opened;
  impl->numbers = arch::for_machine(opened->image.machine).frames;
  impl->word_size = arch::for_machine(opened->image.machine).word_size;
  auto code = TRY(open_elf(opened->file, opened->path));
  impl->code = std::move(code);
  impl->eh_frame.reset(dwarf_getcfi_elf(impl->code.elf.get()));
  const elf::File* from = &opened->file;
  const elf::Image* image = &opened->image;
  std::filesystem::path path = opened->path;
  if (image->find(".debug_frame") == nullptr && image->find(".zdebug_frame") == nullptr) {
    impl->debug_file = elf::local_debug_file(*opened);
    image = nullptr;
    if (const auto& separate = impl->debug_file; separate && separate->image.find(".debug_frame") != nullptr) {
      from = &separate->file;
      image = &separate->image;
      path = separate->path;
    }
  }
  if (image != nullptr) {
    // If it cannot be read, .eh_frame alone is used.
    if (auto debug = open_dwarf(*from, *image, path)) {
      impl->debug = std::move(*debug);
      impl->debug_frame = dwarf_getcfi(impl->debug.dwarf.get());
    }
  }
  return CallFrames(std::move(impl));
}

FrameStep CallFrames::step(VirtAddr at, FrameRegisters& registers, const Memory& memory, bool& signal) {
  const Row& row = impl_->row_at(at);
  signal = row.signal;
  if (!row.known) return FrameStep::no_rule;
  const Rule* back = row.find(row.return_column);
  if (back != nullptr && back->undefined) return FrameStep::outermost;
  const auto cfa = Evaluation(registers, memory, impl_->word_size, std::nullopt).top(row.cfa);
  if (!cfa) return FrameStep::lost_value;
  FrameRegisters caller = registers;
  for (const Rule& rule : row.rules)
    caller.values[rule.reg] =
        rule.undefined ? std::nullopt : Evaluation(registers, memory, impl_->word_size, cfa).value(rule.where);
  // The call frame address is defined as what the stack pointer was before the call.
  if (auto& stack_pointer = caller.values[impl_->numbers.stack_pointer];
      row.find(impl_->numbers.stack_pointer) == nullptr || !stack_pointer)
    stack_pointer = cfa;
  const auto pc = caller.values[row.return_column];
  if (!pc) return FrameStep::lost_value;
  caller.pc = *pc;
  registers = caller;
  return FrameStep::taken;
}

std::optional<unsigned> CallFrames::base_at(VirtAddr at) {
  const Row& row = impl_->row_at(at);
  if (!row.known || row.cfa.size() != 1) return std::nullopt;
  const Operation base = operation_of(row.cfa.front(), impl_->word_size);
  return base.kind == Operation::Kind::sum ? std::optional(static_cast<unsigned>(base.reg)) : std::nullopt;
}

bool CallFrames::is_outermost(VirtAddr at) {
  const Row& row = impl_->row_at(at);
  if (!row.known) return false;
  const Rule* back = row.find(row.return_column);
  return back != nullptr && back->undefined;
}

}  // namespace usdt::locate
