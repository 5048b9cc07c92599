// SPDX-License-Identifier: BSD-2-Clause
#include "arch/spills.hpp"

#include <algorithm>
#include <array>

#include "arch/instructions.hpp"

#ifndef USDT_NO_ZYDIS
#include <Zydis/Decoder.h>
#include <Zydis/Utils.h>
#endif

namespace usdt::arch {

#ifdef USDT_NO_ZYDIS

std::vector<Spill> first_spills(const Arch&, std::span<const std::uint8_t>) { return {}; }
std::vector<RegisterId> first_uses(const Arch&, std::span<const std::uint8_t>) { return {}; }

#else

namespace {

constexpr unsigned kGeneral = 16;
constexpr unsigned kStackPointer = 4;  // by the numbers that instructions have for registers
constexpr std::array<std::string_view, kGeneral> kNames64{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                                          "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

/// By the numbers that instructions have for them; a part counts as the whole.
std::optional<unsigned> number_of(ZydisRegister reg) {
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
  if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15) return std::nullopt;
  return static_cast<unsigned>(whole - ZYDIS_REGISTER_RAX);
}

/// Whether what is behind an instruction may not run.
bool may_leave(ZydisInstructionCategory category) {
  switch (category) {
    case ZYDIS_CATEGORY_COND_BR:
    case ZYDIS_CATEGORY_UNCOND_BR:
    case ZYDIS_CATEGORY_CALL:
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_SYSCALL:
      return true;
    default:
      return false;
  }
}

class Walk {
 public:
  Walk(const Arch& arch, std::span<const std::uint8_t> code) : arch_(arch), code_(code) {
    ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    for (unsigned i = 0; i < kGeneral; ++i) held_[i] = {.of = i, .bytes = 8};
    frame_[kStackPointer] = 0;
    held_[kStackPointer] = {};
  }

  std::vector<Spill> run() && {
    while (!code_.empty() && step()) code_ = code_.subspan(decoded_.length);
    return std::move(spills_);
  }

 private:
  /// The part of one of the caller's registers that a register still has.
  struct Held {
    unsigned of = 0;
    std::uint32_t bytes = 0;   ///< the lowest ones; 0: nothing
    bool from_memory = false;  ///< it has what is where a register points, outside of the frame
  };

  /// False: what is behind this instruction is not followed.
  bool step() {
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder_, code_.data(), code_.size(), &decoded_, operands_.data())))
      return false;
    const ZydisInstructionCategory category = decoded_.meta.category;
    if (may_leave(category) || category == ZYDIS_CATEGORY_STRINGOP) return false;
    switch (decoded_.mnemonic) {
      case ZYDIS_MNEMONIC_PUSH:
        return push();
      case ZYDIS_MNEMONIC_SUB:
      case ZYDIS_MNEMONIC_ADD:
        if (is_register(0, kStackPointer)) return move_stack();
        break;
      case ZYDIS_MNEMONIC_MOV:
        return move();
      case ZYDIS_MNEMONIC_LEA:
        return take_address();
      case ZYDIS_MNEMONIC_AND:
        // How compilers store a bool: its lowest bit, which is all that it has.
        if (keeps_bit()) return true;
        break;
      default:
        break;
    }
    return other();
  }

  /// Saves a register for the caller, or makes room (push %rax): no argument is stored so.
  bool push() {
    if (operands_[0].size != 64 || !frame_[kStackPointer]) return false;
    *frame_[kStackPointer] -= 8;
    return true;
  }

  bool move_stack() {
    if (operands_[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE || !frame_[kStackPointer]) return false;
    const std::int64_t by = operands_[1].imm.value.s;
    *frame_[kStackPointer] += decoded_.mnemonic == ZYDIS_MNEMONIC_ADD ? by : -by;
    return true;
  }

  bool move() {
    const ZydisDecodedOperand& to = operands_[0];
    const ZydisDecodedOperand& from = operands_[1];
    const std::uint32_t bytes = to.size / 8U;
    if (to.type == ZYDIS_OPERAND_TYPE_MEMORY) {
      if (may_be_in_frame(to.mem)) return false;
      const auto at = place_of(to.mem);
      return at ? store(*at, bytes, from) : true;  // what is behind a pointer is no slot of this frame yet
    }
    const auto number = number_of(to.reg.value);
    if (to.type != ZYDIS_OPERAND_TYPE_REGISTER || !number) return to.type == ZYDIS_OPERAND_TYPE_REGISTER;
    const auto source = from.type == ZYDIS_OPERAND_TYPE_REGISTER ? number_of(from.reg.value) : std::nullopt;
    if (*number == kStackPointer) return false;
    if (from.type == ZYDIS_OPERAND_TYPE_MEMORY) {
      frame_[*number].reset();
      held_[*number] = is_high(to.reg.value) ? Held{} : loaded(from.mem, bytes);
      return true;
    }
    frame_[*number] = source && bytes == 8 ? frame_[*source] : std::nullopt;
    held_[*number] = source && !is_high(from.reg.value) && !is_high(to.reg.value)
                         ? Held{held_[*source].of, std::min(held_[*source].bytes, bytes), held_[*source].from_memory}
                         : Held{};
    return true;
  }

  bool take_address() {
    const auto number = number_of(operands_[0].reg.value);
    if (!number || *number == kStackPointer || may_be_in_frame(operands_[1].mem)) return false;
    held_[*number] = {};
    frame_[*number] = operands_[0].size == 64 ? place_of(operands_[1].mem) : std::nullopt;
    return true;
  }

  /// At a place of the frame that is not known.
  [[nodiscard]] bool may_be_in_frame(const ZydisDecodedOperandMem& memory) const {
    const auto base = number_of(memory.base);
    const auto index = number_of(memory.index);
    return index && ((base && frame_[*base]) || frame_[*index]);
  }

  bool keeps_bit() {
    if (operands_[0].type != ZYDIS_OPERAND_TYPE_REGISTER || operands_[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
        operands_[1].imm.value.u != 1 || operands_[0].size != 8 || is_high(operands_[0].reg.value))
      return false;
    const auto number = number_of(operands_[0].reg.value);
    if (!number) return false;
    held_[*number].bytes = std::min(held_[*number].bytes, 1U);
    return true;
  }

  /// Anything else: what it writes is not known any more.
  bool other() {
    for (unsigned i = 0; i < decoded_.operand_count; ++i) {
      const ZydisDecodedOperand& operand = operands_[i];
      const auto read = operand.type == ZYDIS_OPERAND_TYPE_REGISTER ? number_of(operand.reg.value) : std::nullopt;
      if (read && *read != kStackPointer && frame_[*read]) return false;  // another address in the frame is computed
      if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY && may_be_in_frame(operand.mem)) return false;
      if ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0) continue;
      if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
        if (const auto at = place_of(operand.mem)) keep(*at, operand.size / 8U, {});
        continue;
      }
      const auto number = operand.type == ZYDIS_OPERAND_TYPE_REGISTER ? number_of(operand.reg.value) : std::nullopt;
      if (!number) continue;
      if (*number == kStackPointer) return false;
      held_[*number] = {};
      frame_[*number].reset();
    }
    return true;
  }

  bool store(std::int64_t at, std::uint32_t bytes, const ZydisDecodedOperand& from) {
    const auto number = from.type == ZYDIS_OPERAND_TYPE_REGISTER ? number_of(from.reg.value) : std::nullopt;
    const bool whole = number && !is_high(from.reg.value) && held_[*number].bytes >= bytes;
    keep(at, bytes, whole ? held_[*number] : Held{.from_memory = number && held_[*number].from_memory});
    return true;
  }

  /// These bytes of the frame have what `held` says from now on.
  void keep(std::int64_t at, std::uint32_t bytes, Held held) {
    Spill spill{at, bytes, RegisterId::none, held.from_memory};
    const Register* reg = held.bytes >= bytes ? arch_.find(kNames64[held.of]) : nullptr;
    if (reg != nullptr) spill.reg = arch_.id(*reg);
    spills_.push_back(spill);
    stored_.push_back({at, bytes, reg != nullptr ? held : Held{}});
  }

  /// Returns the content of a register that is loaded from the frame, if one store wrote all of it.
  [[nodiscard]] Held loaded(const ZydisDecodedOperandMem& memory, std::uint32_t bytes) const {
    const auto at = place_of(memory);
    const bool own_segment = memory.segment != ZYDIS_REGISTER_FS && memory.segment != ZYDIS_REGISTER_GS;
    if (!at) return {.from_memory = own_segment && number_of(memory.base)};
    for (auto last = stored_.rbegin(); last != stored_.rend(); ++last) {
      if (last->at >= *at + bytes || last->at + last->bytes <= *at) continue;
      if (last->at != *at || last->bytes < bytes || last->held.bytes < bytes) return {};
      return {last->held.of, bytes};
    }
    return {};
  }

  /// From the stack pointer at the first instruction; nothing: not in the frame, or where is not known.
  [[nodiscard]] std::optional<std::int64_t> place_of(const ZydisDecodedOperandMem& memory) const {
    const auto base = number_of(memory.base);
    if (!base || !frame_[*base] || memory.index != ZYDIS_REGISTER_NONE) return std::nullopt;
    return *frame_[*base] + memory.disp.value;
  }

  [[nodiscard]] bool is_register(unsigned operand, unsigned number) const {
    return operands_[operand].type == ZYDIS_OPERAND_TYPE_REGISTER && number_of(operands_[operand].reg.value) == number;
  }
  static bool is_high(ZydisRegister reg) { return reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH; }

  const Arch& arch_;
  std::span<const std::uint8_t> code_;
  ZydisDecoder decoder_{};
  ZydisDecodedInstruction decoded_{};
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands_{};
  std::array<Held, kGeneral> held_{};
  std::array<std::optional<std::int64_t>, kGeneral> frame_{};  ///< registers that point into the frame, and where
  struct Stored {
    std::int64_t at;
    std::uint32_t bytes;
    Held held;
  };
  std::vector<Stored> stored_;
  std::vector<Spill> spills_;
};

/// Finds the registers that are used before they are set.
class Uses {
 public:
  explicit Uses(std::span<const std::uint8_t> code) : code_(code) {
    ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  }

  /// Returns the registers: general ones as a bit each, by number, and above those the vector registers.
  std::uint64_t run() && {
    while (!code_.empty() && step()) code_ = code_.subspan(decoded_.length);
    return used_;
  }

  static constexpr unsigned kFirstVector = 32;

 private:
  bool step() {
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder_, code_.data(), code_.size(), &decoded_, operands_.data())))
      return false;
    const ZydisInstructionCategory category = decoded_.meta.category;
    const bool reads_nothing = category == ZYDIS_CATEGORY_NOP || category == ZYDIS_CATEGORY_WIDENOP ||
                               category == ZYDIS_CATEGORY_CET || sets_whatever_was() || saves();
    for (unsigned i = 0; i < decoded_.operand_count && !reads_nothing; ++i) read(operands_[i]);
    for (unsigned i = 0; i < decoded_.operand_count; ++i)
      if ((operands_[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0 && is_register(i)) set_ |= bit(i);
    return !may_leave(category);
  }

  /// "xor %ecx,%ecx", "sbb %ecx,%ecx", "or $-1,%ecx", "and $0,%ecx": no value is used.
  [[nodiscard]] bool sets_whatever_was() const {
    if (decoded_.operand_count < 2 || !is_register(0)) return false;
    const ZydisDecodedOperand& last = operands_[1];
    const bool with_itself = is_register(1) && last.reg.value == operands_[0].reg.value;
    switch (decoded_.mnemonic) {
      case ZYDIS_MNEMONIC_XOR:
      case ZYDIS_MNEMONIC_SUB:
      case ZYDIS_MNEMONIC_SBB:
        return with_itself;
      case ZYDIS_MNEMONIC_OR:
        return last.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && last.imm.value.s == -1;
      case ZYDIS_MNEMONIC_AND:
        return last.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && last.imm.value.u == 0;
      default:
        return false;
    }
  }

  /// A whole register for the caller, or one that is pushed to make room.
  [[nodiscard]] bool saves() const {
    if (decoded_.mnemonic == ZYDIS_MNEMONIC_PUSH) return is_register(0);
    if (decoded_.mnemonic == ZYDIS_MNEMONIC_MOVQ && is_register(1)) return bit(1) != 0;  // to a vector register
    if (decoded_.mnemonic != ZYDIS_MNEMONIC_MOV || operands_[0].type != ZYDIS_OPERAND_TYPE_MEMORY || !is_register(1))
      return false;
    constexpr std::uint64_t kKept = 1U << 3 | 1U << 5 | 0xf000U;  // rbx, rbp, r12 to r15
    const auto base = number_of(operands_[0].mem.base);
    const bool in_frame = base == kStackPointer || base == kFramePointer;
    return in_frame && operands_[1].size == 64 && (bit(1) & kKept) != 0;
  }

  void read(const ZydisDecodedOperand& operand) {
    if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
      use(bit_of(operand.mem.base) | bit_of(operand.mem.index));
      return;
    }
    const bool reads = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER || operand.visibility != ZYDIS_OPERAND_VISIBILITY_EXPLICIT ||
        !reads)
      return;
    const std::uint64_t which = bit_of(operand.reg.value);
    const bool is_vector = which >> kFirstVector != 0;
    if (!is_vector || operands_[0].type == ZYDIS_OPERAND_TYPE_MEMORY) use(which);
  }

  void use(std::uint64_t which) { used_ |= which & ~set_; }
  [[nodiscard]] bool is_register(unsigned operand) const {
    return operands_[operand].type == ZYDIS_OPERAND_TYPE_REGISTER;
  }
  [[nodiscard]] std::uint64_t bit(unsigned operand) const { return bit_of(operands_[operand].reg.value); }
  static std::uint64_t bit_of(ZydisRegister reg) {
    if (const auto number = number_of(reg)) return std::uint64_t{1} << *number;
    for (const ZydisRegister first : {ZYDIS_REGISTER_XMM0, ZYDIS_REGISTER_YMM0, ZYDIS_REGISTER_ZMM0})
      if (reg >= first && reg < first + kVectors) return std::uint64_t{1} << (kFirstVector + reg - first);
    return 0;
  }

  static constexpr unsigned kFramePointer = 5;
  static constexpr int kVectors = 16;
  std::span<const std::uint8_t> code_;
  ZydisDecoder decoder_{};
  ZydisDecodedInstruction decoded_{};
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands_{};
  std::uint64_t set_ = 0, used_ = 0;
};

}  // namespace

std::vector<Spill> first_spills(const Arch& arch, std::span<const std::uint8_t> code) {
  if (!arch.known_code.spills) return {};
  return Walk(arch, code).run();
}

std::vector<RegisterId> first_uses(const Arch& arch, std::span<const std::uint8_t> code) {
  std::vector<RegisterId> all;
  if (!arch.known_code.spills) return all;
  const std::uint64_t used = Uses(code).run();
  // Not rax, rsp, rbp, r10 and r11, in which there may be something besides arguments.
  for (const unsigned number : {1U, 2U, 3U, 6U, 7U, 8U, 9U, 12U, 13U, 14U, 15U})
    if ((used >> number & 1U) != 0)
      if (const Register* reg = arch.find(kNames64[number])) all.push_back(arch.id(*reg));
  constexpr std::size_t xmm8 = 25;  // by DWARF number
  for (unsigned i = 0; i < 8; ++i)
    if ((used >> (Uses::kFirstVector + 8 + i) & 1U) != 0) all.push_back(arch.dwarf_registers[xmm8 + i]);
  return all;
}

#endif

}  // namespace usdt::arch
