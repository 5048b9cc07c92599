// SPDX-License-Identifier: BSD-2-Clause
#include "arch/returned.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "arch/instructions.hpp"

#ifndef USDT_NO_ZYDIS
#include <Zydis/Decoder.h>
#include <Zydis/Utils.h>
#endif

namespace usdt::arch {

#ifdef USDT_NO_ZYDIS

ResultRegisters proven_results(Machine, std::span<const std::uint8_t>, StackVariables) { return {}; }

#else

namespace {

/// Instructions that are gone through behind one that sets a register, and behind all of them: so many at first, and
/// for each byte of code. Compilers' code takes less.
constexpr unsigned kLongestWay = 96;
constexpr std::uint64_t kStepsAtFirst = 1024;
constexpr std::uint64_t kStepsPerByte = 2;

/// The effect of one instruction on the result registers and the flags.
struct Step {
  std::uint64_t at = 0;
  Instruction code;
  bool leaves = false;               ///< calls, or goes where nothing is known
  std::array<bool, 2> reads = {};    ///< rax, rdx, or a part of it
  std::array<bool, 2> changes = {};  ///< writes it, or a part of it
  std::array<bool, 2> sets = {};     ///< computes it, which is what the instruction is for
  bool reads_flags = false;
  bool sets_flags = false;
};

bool is_move(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVZX:
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD:
    case ZYDIS_MNEMONIC_MOVD:
    case ZYDIS_MNEMONIC_MOVQ:
      return true;
    default:
      return false;
  }
}

bool is_arithmetic(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_LEA:
    case ZYDIS_MNEMONIC_XOR:
    case ZYDIS_MNEMONIC_OR:
    case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_ADC:
    case ZYDIS_MNEMONIC_SBB:
    case ZYDIS_MNEMONIC_SHL:
    case ZYDIS_MNEMONIC_SHR:
    case ZYDIS_MNEMONIC_SAR:
    case ZYDIS_MNEMONIC_ROL:
    case ZYDIS_MNEMONIC_ROR:
    case ZYDIS_MNEMONIC_BSWAP:
    case ZYDIS_MNEMONIC_IMUL:  // that of two registers: the others' results are not written out
    case ZYDIS_MNEMONIC_NEG:
    case ZYDIS_MNEMONIC_NOT:
    case ZYDIS_MNEMONIC_INC:
    case ZYDIS_MNEMONIC_DEC:
      return true;
    default:
      return false;
  }
}

/// setcc and cmovcc, which write a register and no flags.
bool is_conditional(const ZydisDecodedInstruction& decoded) {
  return decoded.meta.category == ZYDIS_CATEGORY_SETCC || decoded.meta.category == ZYDIS_CATEGORY_CMOV;
}

/// cbw, cwde and cdqe: of rax, without saying so.
bool is_extension(ZydisMnemonic mnemonic) {
  return mnemonic == ZYDIS_MNEMONIC_CBW || mnemonic == ZYDIS_MNEMONIC_CWDE || mnemonic == ZYDIS_MNEMONIC_CDQE;
}

/// Whether compilers delete the instruction where nobody needs what it computes. A value that is only read from memory
/// may be volatile, or atomic, and is read for nobody, too.
bool is_computation(const ZydisDecodedInstruction& decoded, std::span<const ZydisDecodedOperand> operands,
                    StackVariables variables) {
  if (!is_move(decoded.mnemonic)) return is_arithmetic(decoded.mnemonic) || is_conditional(decoded);
  const auto memory = std::ranges::find(operands, ZYDIS_OPERAND_TYPE_MEMORY, &ZydisDecodedOperand::type);
  if (memory == operands.end()) return true;
  const bool on_stack = memory->mem.base == ZYDIS_REGISTER_RSP || memory->mem.base == ZYDIS_REGISTER_RBP;
  return on_stack && variables == StackVariables::are_not_volatile;
}

std::optional<std::size_t> result_number(ZydisRegister reg) {
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
  if (whole == ZYDIS_REGISTER_RAX) return 0;
  if (whole == ZYDIS_REGISTER_RDX) return 1;
  return std::nullopt;
}

/// "xor eax, eax" and "sub eax, eax" read nothing.
bool makes_zero(const ZydisDecodedInstruction& decoded, std::span<const ZydisDecodedOperand> operands) {
  const bool clears = decoded.mnemonic == ZYDIS_MNEMONIC_XOR || decoded.mnemonic == ZYDIS_MNEMONIC_SUB;
  return clears && operands.size() > 1 && operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
         operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER && operands[0].reg.value == operands[1].reg.value;
}

void add_registers(Step& step, const ZydisDecodedInstruction& decoded, std::span<const ZydisDecodedOperand> operands,
                   StackVariables variables) {
  const bool zero = makes_zero(decoded, operands);
  for (const ZydisDecodedOperand& each : operands) {
    if (each.type == ZYDIS_OPERAND_TYPE_MEMORY) {
      for (const ZydisRegister reg : {each.mem.base, each.mem.index})
        if (const auto number = result_number(reg)) step.reads[*number] = true;
    }
    const auto number = each.type == ZYDIS_OPERAND_TYPE_REGISTER ? result_number(each.reg.value) : std::nullopt;
    if (!number) continue;
    if ((each.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0 && !zero) step.reads[*number] = true;
    if ((each.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0) continue;
    step.changes[*number] = true;
    if (decoded.meta.category == ZYDIS_CATEGORY_CMOV) step.reads[*number] = true;  // it may keep what it was
    const bool written_out = each.visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT;
    step.sets[*number] =
        is_extension(decoded.mnemonic) || (written_out && is_computation(decoded, operands, variables));
  }
}

std::optional<Step> step_at(const ZydisDecoder& decoder, std::uint64_t at, std::span<const std::uint8_t> bytes,
                            StackVariables variables) {
  ZydisDecodedInstruction decoded;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> all;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(), &decoded, all.data())))
    return std::nullopt;
  Step step{.at = at, .code = decode_instruction(Machine::x86_64, bytes)};
  if (step.code.size == 0) return std::nullopt;
  const bool enters_kernel =
      decoded.meta.category == ZYDIS_CATEGORY_SYSCALL || decoded.meta.category == ZYDIS_CATEGORY_INTERRUPT;
  const bool jumps = step.code.flow == Flow::jump || step.code.flow == Flow::branch;
  step.leaves = step.code.flow == Flow::call || enters_kernel || (jumps && !step.code.target);
  add_registers(step, decoded, std::span(all.data(), decoded.operand_count), variables);
  if (decoded.cpu_flags != nullptr) {
    step.reads_flags = decoded.cpu_flags->tested != 0;
    step.sets_flags = (decoded.cpu_flags->modified | decoded.cpu_flags->set_0 | decoded.cpu_flags->set_1) != 0;
  }
  return step;
}

/// Follows what an instruction computes on all ways from there.
class ResultSearch {
 public:
  ResultSearch(std::span<const std::uint8_t> code, StackVariables variables)
      : left_(kStepsAtFirst + kStepsPerByte * code.size()) {
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    for (std::uint64_t at = 0; at < code.size();) {
      const auto step = step_at(decoder, at, code.subspan(at), variables);
      if (!step) break;
      steps_.push_back(*step);
      at += step->code.size;
    }
  }

  bool proves(std::size_t reg) {
    for (std::size_t i = 0; i < steps_.size() && left_ != 0; ++i)
      if (steps_[i].sets[reg] && is_for_caller(i, reg)) return true;
    return false;
  }

 private:
  /// A place on a way, and whether the flags are still those of the instruction that it began with.
  struct Place {
    std::uint64_t at = 0;
    bool flags = false;
    friend bool operator==(const Place&, const Place&) = default;
  };

  bool is_for_caller(std::size_t first, std::size_t reg) {
    const Step& setter = steps_[first];
    std::vector<Place> seen{{setter.at + setter.code.size, setter.sets_flags}};
    bool returned = false;
    for (std::size_t next = 0; next < seen.size(); ++next) {
      if (seen.size() > kLongestWay || left_ == 0) return false;
      --left_;
      const Place place = seen[next];
      const Step* step = at(place.at);
      if (step == nullptr || step->leaves || step->reads[reg] || (place.flags && step->reads_flags)) return false;
      if (step->changes[reg]) continue;  // what was there before is of no use on this way
      if (step->code.flow == Flow::ret) {
        returned = true;
        continue;
      }
      add(seen, *step, place.flags && !step->sets_flags);
    }
    return returned;
  }

  static void add(std::vector<Place>& seen, const Step& step, bool flags) {
    const auto put = [&](std::uint64_t at) {
      if (std::ranges::find(seen, Place{at, flags}) == seen.end()) seen.push_back({at, flags});
    };
    if (step.code.target) put(step.at + static_cast<std::uint64_t>(*step.code.target));
    if (step.code.flow != Flow::jump) put(step.at + step.code.size);
  }

  [[nodiscard]] const Step* at(std::uint64_t address) const {
    const auto found = std::ranges::lower_bound(steps_, address, {}, &Step::at);
    return found != steps_.end() && found->at == address ? &*found : nullptr;
  }

  std::vector<Step> steps_;
  std::uint64_t left_;
};

}  // namespace

ResultRegisters proven_results(Machine machine, std::span<const std::uint8_t> code, StackVariables variables) {
  if (machine != Machine::x86_64) return {};
  ResultSearch search(code, variables);
  const bool low = search.proves(0);
  return {.low = low, .high = search.proves(1)};
}

#endif

}  // namespace usdt::arch
