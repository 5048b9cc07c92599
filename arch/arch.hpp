// SPDX-License-Identifier: BSD-2-Clause
// One constexpr table per machine; all are compiled on every host, so any machine's files can be read anywhere.
// Whatever differs from machine to machine is a field here, named after what is asked, and has no default: a table that
// lacks one does not compile.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

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
  /// 0..30 = x0..x30, 31 = sp, 32 = pc; riscv64: 0 = pc, 1..31 = x1..x31). i386 names map to the 64-bit kernel's words,
  /// whose low halves hold them. -1 for what pt_regs does not hold (vector and segment registers, xzr).
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

/// Differences between the calling conventions of C and C++, besides their registers.
struct CallTraits {
  /// Registers that other conventions than the usual one pass arguments in (i386: regparm, fastcall, thiscall), which
  /// debug information does not always tell. Results are in the same places. Empty: there is one convention.
  std::span<const RegisterId> variant_arguments;
  bool pads_pairs;           ///< arguments of 16 bytes begin at an even register, so that one before them may stay free
  bool splits_structs;       ///< compilers pass members of some structs as arguments of their own
  bool keeps_stack_pointer;  ///< behind a call the stack pointer is what it was before
  bool passes_halves;        ///< numbers of 2 bytes are passed like float
  bool passes_vectors;       ///< places of vectors of 8 and 16 bytes are known

  [[nodiscard]] bool has_variants() const noexcept { return !variant_arguments.empty(); }
};

/// Kinds of numbers that calling conventions tell apart.
enum class ScalarKind : std::uint8_t {
  integer,   ///< and pointers, enums, bit-fields
  floating,  ///< float, double
  x87,       ///< the 80-bit long double of x86
  vector,    ///< of x86-64, 8 or 16 bytes
  other,     ///< other vectors and what has no fixed place
};

/// How compilers store numbers.
struct NumberTraits {
  std::uint8_t x87_size;  ///< bytes of a long double of 80 bits; 0: the machine has none, its long double is a quad
  ScalarKind quad;        ///< the IEEE number of 128 bits, when it is passed
  std::uint8_t most_alignment;  ///< bytes: the largest alignment of a number in a struct; 0: its size
};

/// Numbers of DWARF that leading from a frame to its caller's takes.
struct FrameNumbers {
  unsigned count;  ///< registers that frames are described by are below it
  unsigned stack_pointer;
  unsigned frame_pointer;
  std::optional<unsigned> link;  ///< has the return address when a function begins; nothing: the stack has it
  /// Bytes from where the frame pointer leads to where it is kept for the caller; the return address is behind that.
  std::int8_t record;
};

/// The words of a signal handler's stack in which the kernel keeps the registers of the interrupted code.
struct SignalFrame {
  /// DWARF numbers of the registers, in the order of their words; the program counter is behind them. Empty: this
  /// library does not know them.
  std::span<const std::uint8_t> registers;
  std::uint64_t offset;  ///< of the first word, from the stack pointer where the handler returns to
};

/// Bits of e_flags that say which ABI a file follows, and what they are in files that this library reads.
struct AbiFlags {
  std::uint32_t mask;
  std::uint32_t value;
};

/// Types of relocations in this machine's ELF files (elf.h).
struct RelocationTypes {
  std::uint32_t address;    ///< stores a symbol's address: R_X86_64_64, R_386_32, R_AARCH64_ABS64
  std::uint32_t glob_dat;   ///< the slot becomes the symbol's address
  std::uint32_t relative;   ///< the slot becomes load bias + addend
  std::uint32_t irelative;  ///< the slot becomes what the function at the addend returns
};

/// Places of thread-local variables, counted from the thread pointer ("ELF Handling For Thread-Local Storage").
struct ThreadBlocks {
  bool before;           ///< blocks are before the thread pointer (variant II), not behind it (variant I)
  std::uint8_t reserve;  ///< bytes behind the thread pointer that come before the program's block, of variant I
  /// Byte at which glibc has the address of the thread's vector of blocks (DTV); nothing: programs in the kernel do not
  /// know this machine's thread pointer.
  std::optional<std::int8_t> vector;
  /// The member of thread_struct that begins with the thread pointer (include/asm/processor.h of the kernel); empty:
  /// there is none.
  std::string_view pointer;
  /// A program's first thread sets its pointer by an instruction: the kernel has it from when the thread is next
  /// switched out, and until then one of the program that was executed before.
  bool late;
};

/// Names and numbers by which glibc's dynamic loader finds the libraries of this machine.
struct LoaderTraits {
  std::string_view platform;   ///< what $PLATFORM stands for, when the loader's own machine is this one
  std::string_view multiarch;  ///< name of Debian's directory of libraries: "x86_64-linux-gnu"
  /// The ABI of its libraries in ld.so.cache: bits 8 to 15 of their flags (glibc, sysdeps/generic/ldconfig.h).
  std::uint32_t cache_abi;
  /// The ABI of libraries with 4-byte addresses for a machine of 8-byte ones (x32); nothing: there are none.
  std::optional<std::uint32_t> narrow_cache_abi;
};

/// Properties of this machine's kernel that programs and probes depend on.
struct KernelTraits {
  std::string_view name;  ///< as people say it: "x86-64", "i386", "arm64", "riscv64"
  std::uint64_t half;     ///< the lowest address of the kernel: KERNEL_HALF of usdt/bpf/pt_regs.h
  /// Frames that a kernel stack taken by a BPF helper has on top of the program's.
  std::uint8_t helper_frames;
  bool rewrites_nops;  ///< it may make calls of nops with a uprobe on them
  bool steps_returns;  ///< a uprobe on a return instruction is stepped; else it is simulated
  /// The release since which chains of frame pointers have the caller of a function that is at its first instruction.
  std::optional<std::pair<unsigned, unsigned>> adds_callers;
  /// The other machine whose kernels run programs of this one; nothing: none does.
  std::optional<Machine> guest_of;
};

/// Analyses of machine code that have been shown to be right for this machine.
struct CodeKnowledge {
  bool spills;        ///< what a function's first instructions do with its arguments (spills.hpp)
  bool rust_results;  ///< where functions of Rust leave results
  bool pieces;        ///< a frame description that begins with a frame is one of a function's piece (.cold)
  /// Version 1.N of Go from which on its functions pass arguments in registers; 0: none does.
  unsigned go_registers;
};

/// The operand dialect of notes (dialect.hpp).
struct Dialect;

struct Arch {
  Machine machine;
  std::string_view name;      ///< as JSON and recordings have it, and uname(2), but for i386
  std::uint16_t elf_machine;  ///< e_machine: EM_X86_64 62, EM_386 3, EM_AARCH64 183, EM_RISCV 243
  AbiFlags abi_flags;
  std::uint8_t word_size;    ///< bytes of a pointer and of an argument without a size
  std::int8_t ip_word;       ///< pt_regs word of the instruction pointer
  std::uint8_t cookie_bits;  ///< bits of a register in a packed cookie: REG_BITS of usdt/bpf/pt_regs.h
  std::span<const Register> registers;
  /// Hash of `registers` by name, filled at compile time: 1 + position, 0 where free. Its size is a power of two.
  std::span<const std::uint16_t> slots;
  std::span<const SitePattern> sites;  ///< the first that fits decides; none fits: single_step

  const Dialect* dialect;
  bool addresses_by_ip;  ///< operands may count from the instruction pointer
  /// The relocation operator of offsets from the thread pointer, in lower case; empty: notes have none.
  std::string_view thread_offset;

  RegisterId stack_pointer;
  CallRegisters kernel_calls;  ///< of the kernel's own functions, as it is compiled
  CallRegisters user_calls;    ///< of C and C++ programs (user_calls.hpp)
  CallTraits call_traits;      ///< of these
  NumberTraits numbers;
  /// By the numbers debug information gives them; none for those this table does not have.
  std::span<const RegisterId> dwarf_registers;
  /// Bytes from the stack pointer to the call frame address (DWARF's CFA) when a function begins: the return address.
  std::uint8_t entry_frame;
  FrameNumbers frames;
  SignalFrame signal_frame;
  bool wraps_at_32_bits;  ///< sums of addresses are modulo 2^32
  /// Bits of a return address that are part of the address; others may sign it (arm64's pointer authentication).
  std::uint64_t return_address_mask;
  RelocationTypes relocations;
  LoaderTraits loader;
  KernelTraits kernel;
  CodeKnowledge known_code;
  /// The segment register whose base is the thread pointer ("ELF Handling For Thread-Local Storage"); empty: the
  /// machine has none.
  std::string_view thread_segment;
  ThreadBlocks thread_blocks;

  /// The alignment of a number of `size` bytes in a struct.
  [[nodiscard]] std::uint32_t number_alignment(std::uint32_t size) const noexcept {
    return numbers.most_alignment == 0 ? size : std::min<std::uint32_t>(size, numbers.most_alignment);
  }
  /// The alignment of what is no plain number, and asks for `size` bytes.
  [[nodiscard]] std::uint32_t other_alignment(std::uint32_t size) const noexcept {
    return numbers.most_alignment == 0 ? size : std::min<std::uint32_t>(size, 16);
  }
  /// The register called `wanted`, in either case, or nullptr.
  [[nodiscard]] const Register* find(std::string_view wanted) const noexcept;
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
/// The table called `name`, as in Arch::name; nullptr: none is.
[[nodiscard]] const Arch* for_name(std::string_view name) noexcept;
/// The tables of all machines.
[[nodiscard]] std::span<const Arch* const> all() noexcept;

/// Returns the register with the upper half of an 8-byte value that GCC prints as `reg`, a 32-bit register of i386: the
/// next hard register in its order eax, edx, ecx, ebx, esi, edi, ebp. None for other registers and machines.
[[nodiscard]] RegisterId pair_high(const Arch& arch, const Register& reg) noexcept;

/// The cost class of the instruction at the start of `bytes` (fewer than 16 at the end of a segment).
[[nodiscard]] SiteClass classify_site(Machine machine, std::span<const std::uint8_t> bytes) noexcept;

/// Bytes of the instruction that lets indirect jumps arrive here and does nothing else (endbr64, endbr32, bti, lpad),
/// where `bytes` begin with one; else 0.
[[nodiscard]] std::uint8_t landing_pad(Machine machine, std::span<const std::uint8_t> bytes) noexcept;

/// A nop, however it is written.
struct Nop {
  std::size_t size = 0;  ///< bytes; 0: there is none
  bool is_long = false;  ///< x86: of the 0f 1f kind; else 90, with prefixes
};
/// The nop of x86 that `bytes` begin with; of other machines none.
[[nodiscard]] Nop nop_at(Machine machine, std::span<const std::uint8_t> bytes) noexcept;

/// Why there can be no uprobe on the instruction that `bytes` begin with, for people; empty where there can, or where
/// the bytes end too early to tell. Some do something else where the kernel steps them; most the kernel refuses. It
/// finds out when a process maps the file and then tells nobody: the probe would be attached and never hit.
/// Instructions younger than the kernel are not told apart.
[[nodiscard]] std::string_view uprobe_refusal(Machine machine, std::span<const std::uint8_t> bytes) noexcept;

}  // namespace usdt::arch
