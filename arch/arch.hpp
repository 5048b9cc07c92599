// SPDX-License-Identifier: BSD-2-Clause
// One constexpr table per machine; all are compiled on every host, so any machine's files can be read anywhere.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "usdt/location.hpp"
#include "usdt/machine.hpp"
#include "usdt/probe.hpp"

namespace usdt::arch {

enum class RegClass : std::uint8_t { gpr, zero, ip, fp, segment };

/// One register name of the note dialect.
struct Register {
  std::string_view name;   ///< as written, without '%': "r10d", "ah", "w3", "d0"
  std::string_view canon;  ///< full register of that file's machine: "r10", "rax" (i386: "eax"), "x3", "v0"
  std::uint16_t bits;      ///< width of the name as written: 8, 16, 32, 64, 128
  std::uint8_t shift;      ///< 8 for ah, bh, ch, dh
  RegClass reg_class;
  /// Index of the 8-byte word in the 64-bit kernel's pt_regs (x86-64: 0 = r15 .. 20 = ss; arm64 user_pt_regs:
  /// 0..30 = x0..x30, 31 = sp, 32 = pc). i386 names map to the 64-bit kernel's words, whose low halves hold
  /// them. -1 for what pt_regs does not hold (vector and segment registers, xzr).
  std::int8_t pt_regs_word;
};

/// Instruction bytes that decide a site's cost: the first `size` bytes, where `mask` is set, equal `bytes`.
struct SitePattern {
  static constexpr std::size_t kMaxBytes = 11;

  std::array<std::uint8_t, kMaxBytes> bytes;
  std::array<std::uint8_t, kMaxBytes> mask;
  std::uint8_t size;
  SiteClass site_class;
};

/// Which registers a calling convention uses.
struct CallRegisters {
  std::span<const RegisterId> arguments;  ///< whole registers, in order
  RegisterId result = RegisterId::none;
  RegisterId result_high = RegisterId::none;  ///< upper half of a result of two words
  std::span<const RegisterId> vectors = {};   ///< of floating-point arguments and results, in order
};

/// Types of relocations in this machine's ELF files (elf.h).
struct RelocationTypes {
  std::uint32_t address;    ///< stores a symbol's address: R_X86_64_64, R_386_32, R_AARCH64_ABS64
  std::uint32_t glob_dat;   ///< the slot becomes the symbol's address
  std::uint32_t relative;   ///< the slot becomes load bias + addend
  std::uint32_t irelative;  ///< the slot becomes what the function at the addend returns
};

struct Arch {
  Machine machine;
  std::uint16_t elf_machine;  ///< e_machine: EM_X86_64 62, EM_386 3, EM_AARCH64 183
  std::uint8_t word_size;     ///< bytes of a pointer and of an argument without a size
  std::int8_t ip_word;        ///< pt_regs word of the instruction pointer
  std::span<const Register> registers;
  /// Hash of `registers` by name, filled at compile time: 1 + position, 0 where free. Its size is a power of two.
  std::span<const std::uint16_t> slots;
  std::span<const SitePattern> sites;  ///< the first that fits decides; none fits: single_step

  RegisterId stack_pointer;
  CallRegisters kernel_calls;  ///< of the kernel's own functions, as it is compiled
  CallRegisters user_calls;    ///< of C and C++ programs (user_calls.hpp)
  /// By the numbers debug information gives them; none for those this table does not have.
  std::span<const RegisterId> dwarf_registers;
  /// Bytes from the stack pointer to the call frame address (DWARF's CFA) when a function begins: the return address.
  std::uint8_t entry_frame;
  bool wraps_at_32_bits;  ///< sums of addresses are modulo 2^32
  /// Bits of a return address that are part of the address; others may sign it (arm64's pointer authentication).
  std::uint64_t return_address_mask;
  RelocationTypes relocations;
  /// The segment register whose base is the thread pointer ("ELF Handling For Thread-Local Storage"); empty: the
  /// machine has none.
  std::string_view thread_segment;

  /// The register called `name`, in either case, or nullptr.
  [[nodiscard]] const Register* find(std::string_view name) const noexcept;
  /// `reg` is one of `registers`.
  [[nodiscard]] RegisterId id(const Register& reg) const noexcept {
    return static_cast<RegisterId>(&reg - registers.data());
  }
  /// The register of `id`, which is not none.
  [[nodiscard]] const Register& reg(RegisterId id) const noexcept { return registers[static_cast<std::size_t>(id)]; }
};

/// The table of `machine`.
[[nodiscard]] const Arch& for_machine(Machine machine) noexcept;
/// The table for an ELF header's e_machine; nullptr for machines we do not read.
[[nodiscard]] const Arch* for_elf_machine(std::uint16_t e_machine) noexcept;

/// Where GCC keeps the upper half of an 8-byte value it prints as `reg`, a 32-bit register of i386: in the next hard
/// register in its order eax, edx, ecx, ebx, esi, edi, ebp. None for other registers and machines.
[[nodiscard]] RegisterId pair_high(const Arch& arch, const Register& reg) noexcept;

/// The cost class of the instruction at the start of `bytes` (fewer than 16 at the end of a segment).
[[nodiscard]] SiteClass classify_site(Machine machine, std::span<const std::uint8_t> bytes) noexcept;

/// Bytes of the instruction that lets indirect jumps arrive here and does nothing else (endbr64, endbr32, bti), where
/// `bytes` begin with one; else 0.
[[nodiscard]] std::uint8_t landing_pad(Machine machine, std::span<const std::uint8_t> bytes) noexcept;

/// Why there can be no uprobe on the instruction that `bytes` begin with, for people; empty where there can, or where
/// the bytes end too early to tell. Some do something else where the kernel steps them; most the kernel refuses. It
/// finds out when a process maps the file and then tells nobody: the probe would be attached and never hit.
/// Instructions younger than the kernel are not told apart.
[[nodiscard]] std::string_view uprobe_refusal(Machine machine, std::span<const std::uint8_t> bytes) noexcept;

}  // namespace usdt::arch
