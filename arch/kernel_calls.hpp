// SPDX-License-Identifier: BSD-2-Clause
// Places of values by the machines' calling conventions, as the kernel is compiled.
//   x86-64: System V ABI, AMD64 supplement, 3.2.3
//   arm64: Procedure Call Standard for the Arm 64-bit Architecture (IHI 0055), 6.8.2
//   riscv64: RISC-V Calling Conventions (riscv-elf-psabi-doc, riscv-cc), the integer one, as -mabi=lp64 has it
//   i386: -mregparm=3 -freg-struct-return (arch/x86/Makefile), GCC's function_arg_32 and function_arg_advance_32
#pragma once

#include <cstdint>

#include "arch/arch.hpp"

namespace usdt::arch {

/// Returns how many units of `unit` bytes hold `size` bytes.
[[nodiscard]] constexpr std::uint32_t units_of(std::uint32_t size, std::uint32_t unit) {
  return size / unit + (size % unit != 0);
}

/// The properties of a type that its place depends on.
struct Shape {
  enum class Kind : std::uint8_t {
    unknown,    ///< void, or what type information says nothing of
    word,       ///< integers, pointers, enums
    structure,  ///< by value
    floating,
  };
  Kind kind = Kind::unknown;
  std::uint32_t size = 0;       ///< bytes; pointers have the machine's
  std::uint32_t alignment = 1;  ///< structures: of the strictest member
  bool packed = false;          ///< structures: a member lies off its alignment
  bool floats = false;          ///< structures: a member is floating-point
  bool blocks = false;          ///< structures: one is, or has in it, what is of a size other than 0, 1, 2, 4 and 8
};

/// The place of an argument's first byte at the first instruction of its function.
struct Place {
  enum class Where : std::uint8_t {
    unknown,    ///< behind or in a value whose place type information does not tell
    elsewhere,  ///< in a vector register, or of no size
    registers,
    stack,
  };
  Where where = Where::unknown;
  std::uint32_t at = 0;  ///< number in CallRegisters::arguments; bytes from the stack pointer
};

/// Gives places to the arguments of one function, in order.
class Places {
 public:
  /// The result counts: one returned in memory takes a register for its address.
  Places(const Arch& arch, const Shape& result, bool varargs);
  [[nodiscard]] Place next(const Shape& shape);

 private:
  [[nodiscard]] Place x86_64(const Shape& shape);
  [[nodiscard]] Place aarch64(const Shape& shape);
  [[nodiscard]] Place riscv64(const Shape& shape);
  [[nodiscard]] Place i386(const Shape& shape);
  [[nodiscard]] Place floating(const Shape& shape);
  [[nodiscard]] Place in_registers(std::uint32_t count);
  [[nodiscard]] Place on_stack(std::uint32_t size, std::uint32_t alignment);

  const Arch& arch_;
  std::uint32_t registers_;  ///< how many there are
  std::uint32_t used_ = 0;
  std::uint32_t vectors_used_ = 0;
  std::uint32_t stack_;  ///< where the next stack argument may begin
  bool lost_ = false;    ///< a value went where we do not know
};

}  // namespace usdt::arch
