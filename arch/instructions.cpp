// SPDX-License-Identifier: BSD-2-Clause
#include "arch/instructions.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#ifndef USDT_NO_ZYDIS
#include <Zydis/Decoder.h>
#endif

#include "arch/instruction_sets.hpp"
#include "arch/riscv64.hpp"

namespace usdt::arch {
namespace {

constexpr std::uint8_t kArm64Instruction = 4;

#ifdef USDT_NO_ZYDIS

constexpr bool kKnowsX86 = false;
Instruction decode_x86(bool, std::span<const std::uint8_t>) noexcept { return {}; }
bool keeps_arguments_x86(bool, std::span<const std::uint8_t>) noexcept { return false; }
bool is_nop_x86(bool, std::span<const std::uint8_t>) noexcept { return false; }
SwitchJump switch_jump_x86(bool, std::span<const std::uint8_t>, std::span<const std::size_t>) noexcept { return {}; }
bool returns_elsewhere_x86(bool, std::span<const std::uint8_t>, std::span<const std::size_t>) noexcept { return false; }

#else

constexpr bool kKnowsX86 = true;

Flow flow_of(const ZydisDecodedInstruction& instruction) noexcept {
  switch (instruction.meta.category) {
    case ZYDIS_CATEGORY_COND_BR:
      return Flow::branch;
    case ZYDIS_CATEGORY_UNCOND_BR:
      return Flow::jump;
    case ZYDIS_CATEGORY_CALL:
      return Flow::call;
    default:
      return instruction.mnemonic == ZYDIS_MNEMONIC_RET ? Flow::ret : Flow::next;
  }
}

constexpr ZydisMachineMode mode_of(bool is64) noexcept {
  return is64 ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32;
}

ZydisDecoder decoder_for(bool is64) noexcept {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, mode_of(is64), is64 ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
  return decoder;
}

Instruction decode_x86(bool is64, std::span<const std::uint8_t> bytes) noexcept {
  const ZydisDecoder decoder = decoder_for(is64);
  ZydisDecodedInstruction decoded;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, nullptr, bytes.data(), bytes.size(), &decoded))) return {};
  constexpr ZyanU64 repeats = ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
  Instruction instruction{.size = decoded.length,
                          .flow = flow_of(decoded),
                          .repeats = (decoded.attributes & repeats) != 0,
                          .calls_kernel = decoded.meta.category == ZYDIS_CATEGORY_SYSCALL ||
                                          decoded.meta.category == ZYDIS_CATEGORY_INTERRUPT};
  if (instruction.flow != Flow::next && decoded.raw.imm[0].is_relative)
    instruction.target = decoded.raw.imm[0].value.s + decoded.length;
  return instruction;
}

/// True for instructions that compute, and neither trap nor wait.
bool only_computes(ZydisMnemonic mnemonic) noexcept {
  static constexpr ZydisMnemonic those[] = {
      ZYDIS_MNEMONIC_ADD, ZYDIS_MNEMONIC_AND, ZYDIS_MNEMONIC_CMP,   ZYDIS_MNEMONIC_DEC,    ZYDIS_MNEMONIC_INC,
      ZYDIS_MNEMONIC_LEA, ZYDIS_MNEMONIC_MOV, ZYDIS_MNEMONIC_MOVSX, ZYDIS_MNEMONIC_MOVSXD, ZYDIS_MNEMONIC_MOVZX,
      ZYDIS_MNEMONIC_NEG, ZYDIS_MNEMONIC_NOT, ZYDIS_MNEMONIC_OR,    ZYDIS_MNEMONIC_SAR,    ZYDIS_MNEMONIC_SHL,
      ZYDIS_MNEMONIC_SHR, ZYDIS_MNEMONIC_SUB, ZYDIS_MNEMONIC_TEST,  ZYDIS_MNEMONIC_XOR};
  return std::ranges::find(those, mnemonic) != std::end(those);
}

/// In rax and r11 functions are given nothing but how many vector registers an argument list of any length uses
/// (System V ABI, AMD64, figure 3.4); on i386 compilers pass arguments of functions of their own in eax, too.
bool is_free(bool is64, ZydisRegister reg) noexcept {
  constexpr ZydisRegister flags[] = {ZYDIS_REGISTER_FLAGS, ZYDIS_REGISTER_EFLAGS, ZYDIS_REGISTER_RFLAGS};
  if (std::ranges::find(flags, reg) != std::end(flags)) return true;
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(mode_of(is64), reg);
  return is64 && (whole == ZYDIS_REGISTER_RAX || whole == ZYDIS_REGISTER_R11);
}

/// True if the address is in the program's image or on its stack.
bool is_surely_there(const ZydisDecodedOperandMem& memory) noexcept {
  const bool own_segment = memory.segment != ZYDIS_REGISTER_FS && memory.segment != ZYDIS_REGISTER_GS;
  return own_segment && memory.index == ZYDIS_REGISTER_NONE &&
         (memory.base == ZYDIS_REGISTER_RIP || memory.base == ZYDIS_REGISTER_RSP || memory.base == ZYDIS_REGISTER_ESP);
}

bool keeps_arguments_x86(bool is64, std::span<const std::uint8_t> bytes) noexcept {
  const ZydisDecoder decoder = decoder_for(is64);
  ZydisDecodedInstruction decoded;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(), &decoded, operands.data())))
    return false;
  if (!only_computes(decoded.mnemonic)) return false;
  const auto keeps = [is64](const ZydisDecodedOperand& operand) {
    const bool writes = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
    if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) return !writes || is_free(is64, operand.reg.value);
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || operand.mem.type == ZYDIS_MEMOP_TYPE_AGEN) return true;
    return !writes && is_surely_there(operand.mem);
  };
  return std::all_of(operands.begin(), operands.begin() + decoded.operand_count, keeps);
}

struct Decoded {
  ZydisDecodedInstruction instruction;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
};

std::optional<Decoded> decode_all_x86(bool is64, std::span<const std::uint8_t> bytes) noexcept {
  const ZydisDecoder decoder = decoder_for(is64);
  Decoded decoded;
  if (!ZYAN_SUCCESS(
          ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(), &decoded.instruction, decoded.operands.data())))
    return std::nullopt;
  return decoded;
}

/// The table that an operand like `table(,%rax,8)` reads an address from.
std::optional<std::uint64_t> table_of(bool is64, const ZydisDecodedOperand& operand) noexcept {
  if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || operand.mem.type != ZYDIS_MEMOP_TYPE_MEM ||
      operand.mem.base != ZYDIS_REGISTER_NONE || operand.mem.index == ZYDIS_REGISTER_NONE ||
      operand.mem.scale != (is64 ? 8 : 4) || operand.mem.disp.value == 0)
    return std::nullopt;
  const auto address = static_cast<std::uint64_t>(operand.mem.disp.value);
  return is64 ? address : address & 0xffffffffU;
}

/// Whether one of the last instructions reads memory at a place that is counted, as `movslq (%rdx,%rax,4),%rax` does.
bool reads_a_table(bool is64, std::span<const std::uint8_t> bytes, std::span<const std::size_t> starts) noexcept {
  constexpr std::size_t most_before = 5;
  for (std::size_t back = 1; back <= std::min(most_before, starts.size()); ++back) {
    const auto code = decode_all_x86(is64, bytes.subspan(starts[starts.size() - back]));
    if (!code) return false;
    for (std::size_t i = 0; i < code->instruction.operand_count; ++i)
      if (code->operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY && code->operands[i].mem.type == ZYDIS_MEMOP_TYPE_MEM &&
          code->operands[i].mem.index != ZYDIS_REGISTER_NONE)
        return true;
  }
  return false;
}

/// Compilers mark a switch by "notrack", where indirect jumps have to land on endbr64. Else they add, in one of the
/// last instructions, to the register that the jump is to, or load it, or jump by the table itself.
SwitchJump switch_jump_x86(bool is64, std::span<const std::uint8_t> bytes,
                           std::span<const std::size_t> starts) noexcept {
  constexpr std::size_t most_between = 4;
  if (starts.empty()) return {};
  const auto jump = decode_all_x86(is64, bytes.subspan(starts.back()));
  if (!jump) return {};
  const ZydisDecodedOperand& to = jump->operands[0];
  if ((jump->instruction.attributes & ZYDIS_ATTRIB_HAS_NOTRACK) != 0) return {.by_distance = true};
  if (to.type != ZYDIS_OPERAND_TYPE_REGISTER) return {.table = table_of(is64, to)};
  const auto whole = [is64](ZydisRegister reg) { return ZydisRegisterGetLargestEnclosing(mode_of(is64), reg); };
  for (std::size_t back = 1; back <= most_between && back < starts.size(); ++back) {
    const auto before = decode_all_x86(is64, bytes.subspan(starts[starts.size() - 1 - back]));
    if (!before || flow_of(before->instruction) != Flow::next) return {};
    const ZydisDecodedOperand& written = before->operands[0];
    const ZydisDecodedOperand& other = before->operands[1];
    if (written.type != ZYDIS_OPERAND_TYPE_REGISTER || whole(written.reg.value) != whole(to.reg.value) ||
        (written.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0)
      continue;
    if (before->instruction.mnemonic == ZYDIS_MNEMONIC_ADD)
      return {.by_distance = reads_a_table(is64, bytes, starts.first(starts.size() - back))};
    if (before->instruction.mnemonic == ZYDIS_MNEMONIC_MOV) return {.table = table_of(is64, other)};
    return {};
  }
  return {};
}

bool is_stack_pointer(ZydisRegister reg) noexcept { return reg == ZYDIS_REGISTER_RSP || reg == ZYDIS_REGISTER_ESP; }

/// `mov %rax,(%rsp)` and the like.
bool writes_top_of_stack(const ZydisDecodedOperand& operand) noexcept {
  return operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT &&
         (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0 && is_stack_pointer(operand.mem.base) &&
         operand.mem.index == ZYDIS_REGISTER_NONE && operand.mem.disp.value == 0;
}

bool moves_stack_pointer(const ZydisDecodedOperand& operand) noexcept {
  return operand.type == ZYDIS_OPERAND_TYPE_REGISTER && is_stack_pointer(operand.reg.value) &&
         (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
}

bool returns_elsewhere_x86(bool is64, std::span<const std::uint8_t> bytes,
                           std::span<const std::size_t> starts) noexcept {
  for (std::size_t back = 2; back <= starts.size(); ++back) {
    const auto before = decode_all_x86(is64, bytes.subspan(starts[starts.size() - back]));
    if (!before || flow_of(before->instruction) != Flow::next) return false;
    if (before->instruction.meta.category == ZYDIS_CATEGORY_PUSH) return true;
    const std::span operands(before->operands.data(), before->instruction.operand_count);
    if (std::ranges::any_of(operands, writes_top_of_stack)) return true;
    if (std::ranges::any_of(operands, moves_stack_pointer)) return false;
  }
  return false;
}

bool is_nop_x86(bool is64, std::span<const std::uint8_t> bytes) noexcept {
  const ZydisDecoder decoder = decoder_for(is64);
  ZydisDecodedInstruction decoded;
  return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, nullptr, bytes.data(), bytes.size(), &decoded)) &&
         decoded.mnemonic == ZYDIS_MNEMONIC_NOP;
}

#endif

/// A field of `bits` bits from bit `from` on that counts instructions.
std::int64_t distance(std::uint32_t word, unsigned from, unsigned bits) noexcept {
  const auto field = static_cast<std::int64_t>(std::uint64_t{word >> from} << (64 - bits)) >> (64 - bits);
  return field * kArm64Instruction;
}

/// Arm Architecture Reference Manual, C4.1.65, "Branches, Exception Generating and System instructions".
Instruction decode_arm64(std::span<const std::uint8_t> bytes) noexcept {
  if (bytes.size() < kArm64Instruction) return {};
  const std::uint32_t word = bytes[0] | bytes[1] << 8U | bytes[2] << 16U | std::uint32_t{bytes[3]} << 24U;
  const auto is = [word](std::uint32_t mask, std::uint32_t value) { return (word & mask) == value; };
  Instruction instruction{.size = kArm64Instruction};
  if (is(0xfc000000, 0x14000000)) {  // b
    instruction.flow = Flow::jump;
    instruction.target = distance(word, 0, 26);
  } else if (is(0xfc000000, 0x94000000)) {  // bl
    instruction.flow = Flow::call;
    instruction.target = distance(word, 0, 26);
  } else if (is(0xff000000, 0x54000000) || is(0x7e000000, 0x34000000)) {  // b.cond, cbz, cbnz
    instruction.flow = Flow::branch;
    instruction.target = distance(word, 5, 19);
  } else if (is(0x7e000000, 0x36000000)) {  // tbz, tbnz
    instruction.flow = Flow::branch;
    instruction.target = distance(word, 5, 14);
  } else if (is(0xfefff000, 0xd61f0000)) {  // br and its authenticating forms
    instruction.flow = Flow::jump;
  } else if (is(0xfefff000, 0xd63f0000)) {  // blr
    instruction.flow = Flow::call;
  } else if (is(0xfffff000, 0xd65f0000)) {  // ret
    instruction.flow = Flow::ret;
  } else if (is(0xffe0001f, 0xd4000001)) {  // svc
    instruction.calls_kernel = true;
  }
  return instruction;
}

/// Arm Architecture Reference Manual, C4.1.86 and C4.1.89, "Data Processing -- Immediate" and "-- Register", as far as
/// they write one of x9 to x17, which pass nothing (IHI 0055, 6.1.1), or flags alone.
bool keeps_arguments_arm64(std::span<const std::uint8_t> bytes) noexcept {
  if (bytes.size() < kArm64Instruction) return false;
  const std::uint32_t word = bytes[0] | bytes[1] << 8U | bytes[2] << 16U | std::uint32_t{bytes[3]} << 24U;
  const auto is = [word](std::uint32_t mask, std::uint32_t value) { return (word & mask) == value; };
  const bool computes = is(0x1c000000, 0x10000000) || is(0x0e000000, 0x0a000000);
  const std::uint32_t written = word & 31;
  constexpr std::uint32_t zero = 31;
  // adds, subs and ands, of an immediate and of a shifted register: with no result they are cmp, cmn and tst.
  const bool sets_flags = is(0x3f800000, 0x31000000) || is(0x7f800000, 0x72000000) || is(0x3f200000, 0x2b000000) ||
                          is(0x7f000000, 0x6a000000);
  return computes && ((written >= 9 && written <= 17) || (written == zero && sets_flags));
}

bool is_nop(Machine machine, std::span<const std::uint8_t> bytes) noexcept {
  constexpr std::array<std::uint8_t, kArm64Instruction> nop = {0x1f, 0x20, 0x03, 0xd5};
  return by_instructions(
      machine, [&](bool is64) { return is_nop_x86(is64, bytes); },
      [&] { return std::ranges::equal(bytes.first(kArm64Instruction), nop); }, [&] { return riscv64::is_nop(bytes); });
}

/// Arm Architecture Reference Manual, C6.2: ADD (shifted register) and ADD (extended register) of 64 bits, whose result
/// "br" then takes.
SwitchJump switch_jump_arm64(std::span<const std::uint8_t> bytes, std::span<const std::size_t> starts) noexcept {
  if (starts.size() < 2 || bytes.size() < starts.back() + kArm64Instruction) return {};
  const auto word_at = [bytes](std::size_t at) {
    return bytes[at] | bytes[at + 1] << 8U | bytes[at + 2] << 16U | std::uint32_t{bytes[at + 3]} << 24U;
  };
  const std::uint32_t jump = word_at(starts.back());
  const std::uint32_t before = word_at(starts[starts.size() - 2]);
  const bool adds = (before & 0xff200000) == 0x8b000000 || (before & 0xffe00000) == 0x8b200000;
  return {.by_distance = adds && (before & 31) == (jump >> 5 & 31)};
}

/// Not arm64's return by another register than x30.
bool is_usual_return(Machine machine, std::span<const std::uint8_t> bytes) noexcept {
  constexpr std::array<std::uint8_t, kArm64Instruction> ret = {0xc0, 0x03, 0x5f, 0xd6};
  return by_instructions(
      machine, [](bool) { return true; }, [&] { return std::ranges::equal(bytes.first(kArm64Instruction), ret); },
      [] { return true; });
}

}  // namespace

bool knows_instructions(Machine machine) noexcept {
  return by_instructions(
      machine, [](bool) { return kKnowsX86; }, [] { return true; }, [] { return true; });
}

Instruction decode_instruction(Machine machine, std::span<const std::uint8_t> bytes) noexcept {
  return by_instructions(
      machine, [&](bool is64) { return decode_x86(is64, bytes); }, [&] { return decode_arm64(bytes); },
      [&] { return riscv64::decode(bytes); });
}

bool keeps_arguments(Machine machine, std::span<const std::uint8_t> bytes) noexcept {
  return by_instructions(
      machine, [&](bool is64) { return keeps_arguments_x86(is64, bytes); },
      [&] { return keeps_arguments_arm64(bytes); }, [&] { return riscv64::keeps_arguments(bytes); });
}

SwitchJump switch_jump(Machine machine, std::span<const std::uint8_t> bytes,
                       std::span<const std::size_t> starts) noexcept {
  return by_instructions(
      machine, [&](bool is64) { return switch_jump_x86(is64, bytes, starts); },
      [&] { return switch_jump_arm64(bytes, starts); }, [&] { return riscv64::switch_jump(bytes, starts); });
}

bool returns_elsewhere(Machine machine, std::span<const std::uint8_t> bytes,
                       std::span<const std::size_t> starts) noexcept {
  return by_instructions(
      machine, [&](bool is64) { return returns_elsewhere_x86(is64, bytes, starts); }, [] { return false; },
      [] { return false; });
}

std::uint8_t instruction_size(Machine machine, std::span<const std::uint8_t> bytes) noexcept {
  return decode_instruction(machine, bytes).size;
}

bool returns_at_once(Machine machine, std::span<const std::uint8_t> bytes) noexcept {
  while (true) {
    const Instruction next = decode_instruction(machine, bytes);
    if (next.size == 0) return false;
    if (next.flow == Flow::ret) return is_usual_return(machine, bytes);
    if (!is_nop(machine, bytes)) return false;
    bytes = bytes.subspan(next.size);
  }
}

bool ends_with_call(Machine machine, std::span<const std::uint8_t> bytes) noexcept {
  for (std::size_t size = std::min(bytes.size(), kLongestCall); size > 0; --size) {
    const Instruction last = decode_instruction(machine, bytes.last(size));
    if (last.size == size && last.flow == Flow::call) return true;
  }
  return false;
}

bool returns_from_signal(Machine machine, std::span<const std::uint8_t> bytes) noexcept {
  const auto begins_with = [&](std::initializer_list<std::uint8_t> code) {
    return bytes.size() >= code.size() && std::equal(code.begin(), code.end(), bytes.begin());
  };
  switch (machine) {
    case Machine::x86_64:  // mov $15,%rax or %eax; syscall
      return begins_with({0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}) ||
             begins_with({0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05});
    case Machine::i386:  // mov $173,%eax; int $0x80, and pop %eax; mov $119,%eax; int $0x80
      return begins_with({0xb8, 0xad, 0, 0, 0, 0xcd, 0x80}) || begins_with({0x58, 0xb8, 0x77, 0, 0, 0, 0xcd, 0x80});
    case Machine::aarch64:  // mov x8, #139; svc #0
      return begins_with({0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4});
    case Machine::riscv64:  // li a7, 139; ecall
      return begins_with({0x93, 0x08, 0xb0, 0x08, 0x73, 0, 0, 0});
  }
  return false;
}

}  // namespace usdt::arch
