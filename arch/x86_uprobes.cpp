// SPDX-License-Identifier: BSD-2-Clause
// Which x86 instructions the kernel takes a uprobe on: uprobe_init_insn(), branch_setup_xol_ops() of
// arch/x86/kernel/uprobes.c and is_trap_insn() of kernel/events/uprobes.c, the same from 5.10 to 7.2 for all that
// compilers make. Measured on 6.18 for 193,024 encodings in 64-bit and in 32-bit code
// (tests/live/attach/refusals_test.py). And those that the kernel takes, and that do something else when they are
// stepped.
#include <algorithm>
#include <array>

#include "arch/arch.hpp"
#include "arch/x86.hpp"

namespace usdt::arch::x86 {
namespace {

/// One bit for each opcode; bit N of a row is opcode `row << 4 | N`.
using Opcodes = std::array<std::uint16_t, 16>;
constexpr bool has(const Opcodes& rows, std::uint8_t opcode) { return (rows[opcode >> 4] >> (opcode & 15) & 1) != 0; }

/// good_insns_64 and good_insns_32. 0f is in both, so that good_2byte_insns is never asked.
constexpr Opcodes kGood64 = {0xbf3f, 0x3f3f, 0x7f7f, 0x7f7f, 0xffff, 0xffff, 0x0ff8, 0xffff,
                             0xfffb, 0xfbff, 0xffff, 0xffff, 0x0fff, 0xff8f, 0x0b0f, 0xf3ed};
constexpr Opcodes kGood32 = {0xff7f, 0x7f7f, 0xffff, 0xffff, 0xffff, 0xffff, 0x0fff, 0xffff,
                             0xffff, 0xffff, 0xffff, 0xffff, 0x0fff, 0xffff, 0x0f0f, 0xf3ed};

constexpr std::string_view kNotStepped = "its opcode is none of those that uprobes step";
constexpr std::string_view kTakenForAnother =
    "the kernel would run it as a jump, a nop or a return: uprobes judge VEX and EVEX instructions by their opcode "
    "alone";
constexpr std::string_view kStoresTrap =
    "stepped, pushf would store the processor's trap flag, of which the program dies when it loads its flags again";
constexpr std::string_view kCallsKernel =
    "stepped, a system call would return to a copy of the instruction, which a child process does not have";
constexpr std::string_view kNotKnown = "uprobes do not know SSE4a, XOP, FMA4 and APX instructions";

/// The bytes of an instruction, one after the other; 0 behind the last.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) noexcept : bytes_(bytes) {}
  [[nodiscard]] std::uint8_t peek(std::size_t ahead = 0) const noexcept {
    return ahead < bytes_.size() ? bytes_[ahead] : std::uint8_t{0};
  }
  [[nodiscard]] bool has(std::size_t count) const noexcept { return bytes_.size() >= count; }
  void skip(std::size_t count) noexcept { bytes_ = bytes_.subspan(std::min(count, bytes_.size())); }

 private:
  std::span<const std::uint8_t> bytes_;
};

constexpr unsigned mod(std::uint8_t modrm) { return modrm >> 6; }
constexpr unsigned reg(std::uint8_t modrm) { return modrm >> 3 & 7U; }

struct Prefixes {
  bool refused = false;    ///< segment or lock: is_prefix_bad()
  bool repne = false;      ///< f2
  bool operand16 = false;  ///< 66
};

bool is_prefix(std::uint8_t byte) {
  switch (byte) {
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0x66:
    case 0x67:
    case 0xf0:
    case 0xf2:
    case 0xf3:
      return true;
    default:
      return false;
  }
}

Prefixes skip_prefixes(Reader& code) {
  Prefixes found;
  while (code.has(1) && is_prefix(code.peek())) {
    const std::uint8_t byte = code.peek();
    found.operand16 |= byte == 0x66;
    found.repne |= byte == 0xf2;
    // fs and gs (64, 65) are those of thread-local variables, and allowed.
    found.refused |= byte == 0x26 || byte == 0x2e || byte == 0x36 || byte == 0x3e || byte == 0xf0;
    code.skip(1);
  }
  return found;
}

/// AMD's instructions with four operands, which the kernel's opcode map leaves out.
bool is_fma4(unsigned map, std::uint8_t opcode) {
  if (map != 3) return false;
  const unsigned row = opcode >> 4;
  return opcode == 0x48 || opcode == 0x49 || (opcode >= 0x5c && opcode <= 0x5f) ||
         ((row == 6 || row == 7) && (opcode & 8) != 0);
}

/// VEX, EVEX, XOP and REX2 prefixes have their opcode in a fixed place, and it is looked up as if it were a legacy one.
struct Vector {
  std::size_t opcode_at = 0;  ///< 0: no such prefix
  unsigned map = 1;
  bool known = true;
};

Vector vector_prefix(const Reader& code, bool is64) {
  const std::uint8_t second = code.peek(1);
  const bool vector = is64 || mod(second) == 3;  // else lds, les and bound
  switch (code.peek()) {
    case 0xc5:
      if (vector) return {.opcode_at = 2};
      break;
    case 0xc4:
      if (vector) return {.opcode_at = 3, .map = second & 0x1fU};
      break;
    case 0x62:
      if (vector) return {.opcode_at = 4, .map = 0};
      break;
    case 0x8f:
      // 8f with reg 0 is pop. Older kernels take XOP for a pop of another length and go on with the wrong instruction.
      if (reg(second) != 0) return {.opcode_at = 3, .known = false};
      break;
    case 0xd5:
      if (is64) return {.opcode_at = 2, .known = false};
      break;
    default:
      break;
  }
  return {};
}

bool is_branch(const Reader& code) {
  const std::uint8_t opcode = code.peek();
  return opcode == 0xe8 || opcode == 0xe9 || opcode == 0xeb || opcode >> 4 == 7 ||
         (opcode == 0x0f && code.peek(1) >> 4 == 8);
}

/// The one-byte opcodes for which branch_setup_xol_ops() emulates, and arch_uprobe_analyze_insn() leaves the
/// instruction pointer alone, without asking whether the opcode is one of another map. Measured on 6.18: "vpbroadcastb
/// %esi,%ymm17" (EVEX 7a) is run as jp.
bool is_taken_for_another(std::uint8_t opcode) {
  switch (opcode) {
    case 0x90:  // nop; vpgatherdd
    case 0x9a:  // call
    case 0xc2:  // ret; vcmpps
    case 0xc3:
    case 0xca:
    case 0xcb:
    case 0xe8:  // call and jmp; vpsubsb, vpsubsw, vpminsw, vpor
    case 0xe9:
    case 0xea:
    case 0xeb:
    case 0xff:  // call and jmp
      return true;
    default:
      return opcode >> 4 == 7;  // conditional jumps; vpshufd, vpcmpeqb, vmovdqa to memory
  }
}

/// A write to the stack segment register holds exceptions back for one instruction (insn_masking_exception()).
bool holds_exceptions_back(const Reader& code) {
  return code.peek() == 0x17 || (code.peek() == 0x8e && reg(code.peek(1)) == 2);
}

/// Why an instruction without VEX is not what it is where it is stepped; empty: it is.
std::string_view changed_by_stepping(const Reader& code) {
  constexpr std::uint8_t pushf = 0x9c;
  constexpr std::uint8_t syscall = 0x05;   // behind 0f
  constexpr std::uint8_t sysenter = 0x34;  // behind 0f
  if (code.peek() == pushf) return kStoresTrap;
  if (code.peek() == 0x0f && code.has(2) && (code.peek(1) == syscall || code.peek(1) == sysenter)) return kCallsKernel;
  return {};
}

}  // namespace

std::string_view uprobe_refusal(std::span<const std::uint8_t> bytes, bool is64) noexcept {
  Reader code(bytes);
  if (code.peek() == 0xcc) return "it is a breakpoint already";
  const Prefixes prefixes = skip_prefixes(code);
  if (prefixes.refused) return "uprobes refuse segment and lock prefixes";
  if (is64 && code.peek() >> 4 == 4) code.skip(1);  // rex
  const Opcodes& good = is64 ? kGood64 : kGood32;
  if (!code.has(1)) return {};
  if (const Vector vector = vector_prefix(code, is64); vector.opcode_at != 0) {
    if (!vector.known) return kNotKnown;
    if (!code.has(vector.opcode_at + 1)) return {};
    const std::uint8_t opcode = code.peek(vector.opcode_at);
    if (is_fma4(vector.map, opcode)) return kNotKnown;
    if (!has(good, opcode))
      return "uprobes judge VEX and EVEX instructions by their opcode alone, and this one is none of those they step";
    return is_taken_for_another(opcode) ? kTakenForAnother : std::string_view();
  }
  // 0f 78 and 0f 79 with 66 or f2: extrq, insertq.
  if (code.peek() == 0x0f && (code.peek(1) & 0xfe) == 0x78 && (prefixes.operand16 || prefixes.repne)) return kNotKnown;
  if (holds_exceptions_back(code)) return "it loads the stack segment register";
  if (prefixes.operand16 && is_branch(code)) return "uprobes refuse branches with a 16-bit prefix";
  return has(good, code.peek()) ? changed_by_stepping(code) : kNotStepped;
}

}  // namespace usdt::arch::x86
