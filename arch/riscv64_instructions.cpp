// SPDX-License-Identifier: BSD-2-Clause
// The RISC-V Instruction Set Manual, volume I: chapters "RV32I", "RV64I" and "C" (compressed instructions).
#include <optional>

#include "arch/riscv64.hpp"

namespace usdt::arch::riscv64 {
namespace {

/// Fields of the words below: the register that is written, and those that are read.
constexpr unsigned kWritten = 7, kFirst = 15, kSecond = 20, kCompressedSecond = 2;

/// Some bits of an instruction and where they belong in its number.
struct Bits {
  unsigned from;
  unsigned count;
  unsigned to;
};

/// The number of `width` bits, with a sign, whose bits an instruction has in these places.
template <std::size_t Count>
constexpr std::int64_t number(std::uint32_t word, const Bits (&places)[Count], unsigned width) {
  std::uint64_t found = 0;
  for (const Bits& each : places) found |= (std::uint64_t{word} >> each.from & ((1U << each.count) - 1)) << each.to;
  return static_cast<std::int64_t>(found << (64 - width)) >> (64 - width);
}

std::int64_t immediate_12(std::uint32_t word) { return number(word, {{20, 12, 0}}, 12); }
std::int64_t upper_immediate(std::uint32_t word) { return number(word, {{12, 20, 12}}, 32); }

std::int64_t jump_distance(std::uint32_t word) {
  return number(word, {{21, 10, 1}, {20, 1, 11}, {12, 8, 12}, {31, 1, 20}}, 21);
}
std::int64_t branch_distance(std::uint32_t word) {
  return number(word, {{8, 4, 1}, {25, 6, 5}, {7, 1, 11}, {31, 1, 12}}, 13);
}
std::int64_t compressed_jump_distance(std::uint32_t word) {
  return number(word, {{3, 3, 1}, {11, 1, 4}, {2, 1, 5}, {7, 1, 6}, {6, 1, 7}, {9, 2, 8}, {8, 1, 10}, {12, 1, 11}}, 12);
}
std::int64_t compressed_branch_distance(std::uint32_t word) {
  return number(word, {{3, 2, 1}, {10, 2, 3}, {2, 1, 5}, {5, 2, 6}, {12, 1, 8}}, 9);
}

/// "jalr", "c.jr" and "c.jalr": the register that has the address, and the one that the return address goes to.
struct RegisterJump {
  std::uint32_t to;
  std::uint32_t link;
  std::int64_t distance;
};
std::optional<RegisterJump> register_jump(const Code& code) {
  if (code.is(0x707f, 0x67)) return RegisterJump{code.reg(kFirst), code.reg(kWritten), immediate_12(code.word)};
  const bool links = code.is(0xf07f, 0x9002);
  if ((!links && !code.is(0xf07f, 0x8002)) || code.reg(kWritten) == kZero) return std::nullopt;
  return RegisterJump{code.reg(kWritten), links ? kRa : kZero, 0};
}

/// A return is a jump to ra. Routines that save registers for others return by t0, which other code jumps by, too.
Flow flow_of(const RegisterJump& jump) {
  if (jump.link != kZero) return Flow::call;
  return jump.to == kRa && jump.distance == 0 ? Flow::ret : Flow::jump;
}

/// The register that the instruction computes, without memory: operations of registers and immediates, "lui", "auipc".
std::optional<std::uint32_t> computed(const Code& code) {
  for (const std::uint32_t opcode : {0x13U, 0x17U, 0x1bU, 0x33U, 0x37U, 0x3bU})
    if (code.is(0x7f, opcode)) return code.reg(kWritten);
  for (const std::uint32_t opcode :
       {0x0001U, 0x2001U, 0x4001U, 0x6001U, 0x0002U})  // c.addi, c.addiw, c.li, c.lui, c.slli
    if (code.is(0xe003, opcode)) return code.reg(kWritten);
  const bool moves = code.is(0xe003, 0x8002) && code.reg(kCompressedSecond) != kZero;  // c.mv, c.add
  return moves ? std::optional(code.reg(kWritten)) : std::nullopt;
}

/// "mv", "addi" of another register, and "c.mv": what is written, what is read.
struct Move {
  std::uint32_t to;
  std::uint32_t from;
};
std::optional<Move> move_of(const Code& code) {
  if (code.is(0x707f, 0x13)) return Move{code.reg(kWritten), code.reg(kFirst)};
  const bool moves = code.is(0xf003, 0x8002) && code.reg(kCompressedSecond) != kZero;
  return moves ? std::optional(Move{code.reg(kWritten), code.reg(kCompressedSecond)}) : std::nullopt;
}

/// The register that becomes the sum of two: "add" and "c.add".
std::optional<std::uint32_t> sum_of_two(const Code& code) {
  const bool adds = code.is(0xfe00707f, 0x33) || (code.is(0xf003, 0x9002) && code.reg(kCompressedSecond) != kZero);
  return adds ? std::optional(code.reg(kWritten)) : std::nullopt;
}

/// "mv sp, a0" to "a7", and "ld sp, N(REGISTER)" but of the stack pointer and the frame pointer.
bool loads_sp(const Code& code) {
  if (const auto move = move_of(code)) return move->to == kSp && move->from >= kA0 && move->from <= kA7;
  const std::uint32_t base = code.reg(kFirst);
  return code.is(0x707f, 0x3003) && code.reg(kWritten) == kSp && base != kSp && base != kS0;
}

}  // namespace

std::optional<Code> code_at(std::span<const std::uint8_t> bytes) noexcept {
  if (bytes.size() < 2) return std::nullopt;
  const std::uint32_t low = bytes[0] | bytes[1] << 8U;
  if ((low & 3U) != 3U) return Code{low, 2};
  if ((low & 0x1fU) == 0x1fU || bytes.size() < 4) return std::nullopt;  // 6 bytes and more: no processor has any
  return Code{low | bytes[2] << 16U | std::uint32_t{bytes[3]} << 24U, 4};
}

Instruction decode(std::span<const std::uint8_t> bytes) noexcept {
  const auto code = code_at(bytes);
  if (!code) return {};
  Instruction instruction{.size = code->size};
  if (code->is(0x7f, 0x6f)) {  // jal
    instruction.flow = code->reg(kWritten) == kZero ? Flow::jump : Flow::call;
    instruction.target = jump_distance(code->word);
  } else if (code->is(0xe003, 0xa001)) {  // c.j
    instruction.flow = Flow::jump;
    instruction.target = compressed_jump_distance(code->word);
  } else if (code->is(0x7f, 0x63)) {  // beq, bne, blt, bge, bltu, bgeu
    instruction.flow = Flow::branch;
    instruction.target = branch_distance(code->word);
  } else if (code->is(0xc003, 0xc001)) {  // c.beqz, c.bnez
    instruction.flow = Flow::branch;
    instruction.target = compressed_branch_distance(code->word);
  } else if (const auto jump = register_jump(*code)) {
    instruction.flow = flow_of(*jump);
  } else if (code->is(0xffffffff, 0x73)) {
    instruction.calls_kernel = true;
  }
  return instruction;
}

/// True of instructions that write one of t1, t4, t5 and t6, in which nothing is passed. GCC and Clang pass a nested
/// function's frame in t2 or t3, and calls of routines that save registers leave their return address in t0.
bool keeps_arguments(std::span<const std::uint8_t> bytes) noexcept {
  const auto code = code_at(bytes);
  const auto written = code ? computed(*code) : std::nullopt;
  return written && (*written == kZero || *written == kT1 || (*written >= kT4 && *written <= kT6));
}

bool is_nop(std::span<const std::uint8_t> bytes) noexcept {
  const auto code = code_at(bytes);
  return code && (code->is(0xffff, 0x0001) || code->is(0xffffffff, 0x13));
}

/// Compilers add the distance, out of a table, to where it counts from, and jump there by the next instruction.
SwitchJump switch_jump(std::span<const std::uint8_t> bytes, std::span<const std::size_t> starts) noexcept {
  if (starts.size() < 2) return {};
  const auto last = code_at(bytes.subspan(starts.back()));
  const auto before = code_at(bytes.subspan(starts[starts.size() - 2]));
  const auto jump = last ? register_jump(*last) : std::nullopt;
  const auto sum = before ? sum_of_two(*before) : std::nullopt;
  return {.by_distance = jump && sum && *sum == jump->to};
}

/// The return address is read by a move of ra, and by a store of it anywhere but on the stack.
StackUse stack_use(std::span<const std::uint8_t> bytes) noexcept {
  StackUse use;
  const auto code = code_at(bytes);
  if (!code) return use;
  const auto move = move_of(*code);
  const bool stores = code->is(0x707f, 0x3023) && code->reg(kSecond) == kRa && code->reg(kFirst) != kSp;
  use.reads_return_register = stores || (move && move->from == kRa);
  use.sets_stack = move && move->to == kSp && move->from != kSp && move->from != kS0;
  return use;
}

bool may_switch_stacks(std::span<const std::uint8_t> code) noexcept {
  for (std::size_t i = 0; i < code.size(); i += 2) {
    const auto each = code_at(code.subspan(i));
    if (each && loads_sp(*each)) return true;
  }
  return false;
}

std::optional<FarJump> far_jump(std::span<const std::uint8_t> bytes) noexcept {
  const auto first = code_at(bytes);
  if (!first || !first->is(0x7f, 0x17)) return std::nullopt;
  const auto second = code_at(bytes.subspan(first->size));
  const auto jump = second ? register_jump(*second) : std::nullopt;
  if (!jump || second->size != 4 || jump->to != first->reg(kWritten)) return std::nullopt;
  return FarJump{upper_immediate(first->word) + jump->distance, jump->link != kZero};
}

}  // namespace usdt::arch::riscv64
