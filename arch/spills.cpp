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

#else

namespace {

constexpr unsigned kGeneral = 16;
constexpr unsigned kStackPointer = 4;  // by the numbers that instructions have for registers
constexpr std::array<std::string_view, kGeneral> kNames64{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                                          "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

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
  /// What a register still has of a register as the caller left that.
  struct Held {
    unsigned of = 0;
    std::uint32_t bytes = 0;  ///< the lowest ones; 0: nothing
  };

  /// False: what is behind this instruction is not followed.
  bool step() {
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder_, code_.data(), code_.size(), &decoded_, operands_.data())))
      return false;
    switch (decoded_.meta.category) {
      case ZYDIS_CATEGORY_COND_BR:
      case ZYDIS_CATEGORY_UNCOND_BR:
      case ZYDIS_CATEGORY_CALL:
      case ZYDIS_CATEGORY_RET:
      case ZYDIS_CATEGORY_INTERRUPT:
      case ZYDIS_CATEGORY_SYSCALL:
      case ZYDIS_CATEGORY_STRINGOP:
        return false;
      default:
        break;
    }
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
                         ? Held{held_[*source].of, std::min(held_[*source].bytes, bytes)}
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
    keep(at, bytes, whole ? held_[*number] : Held{});
    return true;
  }

  /// These bytes of the frame have what `held` says from now on.
  void keep(std::int64_t at, std::uint32_t bytes, Held held) {
    Spill spill{at, bytes, RegisterId::none};
    const Register* reg = held.bytes >= bytes ? arch_.find(kNames64[held.of]) : nullptr;
    if (reg != nullptr) spill.reg = arch_.id(*reg);
    spills_.push_back(spill);
    stored_.push_back({at, bytes, reg != nullptr ? held : Held{}});
  }

  /// What a register has that is loaded from the frame: what was stored there last, by one store.
  [[nodiscard]] Held loaded(const ZydisDecodedOperandMem& memory, std::uint32_t bytes) const {
    const auto at = place_of(memory);
    if (!at) return {};
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
  static std::optional<unsigned> number_of(ZydisRegister reg) {
    const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15) return std::nullopt;
    return static_cast<unsigned>(whole - ZYDIS_REGISTER_RAX);
  }

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

}  // namespace

std::vector<Spill> first_spills(const Arch& arch, std::span<const std::uint8_t> code) {
  if (arch.machine != Machine::x86_64) return {};
  return Walk(arch, code).run();
}

#endif

}  // namespace usdt::arch
