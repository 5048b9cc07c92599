// SPDX-License-Identifier: BSD-2-Clause
// Where the machines' calling conventions put values, as the kernel is compiled. Private to plan/.
//   x86-64: System V ABI, AMD64 supplement, 3.2.3
//   arm64: Procedure Call Standard for the Arm 64-bit Architecture (IHI 0055), 6.8.2
//   i386: -mregparm=3 -freg-struct-return (arch/x86/Makefile), GCC's function_arg_32 and function_arg_advance_32
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "btf/types.hpp"
#include "usdt/machine.hpp"

namespace usdt::plan {

/// What a type asks of a convention.
struct Shape {
  btf::ValueClass value_class = btf::ValueClass::none;
  std::uint32_t size = 0;  ///< bytes; pointers have the machine's
  btf::Layout layout;      ///< structs: of their members
};
[[nodiscard]] Shape shape_of(const btf::Types& types, const btf::ValueType& type, Machine machine);

/// Where an argument's first byte is when its function begins.
struct Place {
  enum class Where : std::uint8_t {
    unknown,    ///< behind or in a value whose place type information does not tell
    elsewhere,  ///< in a vector register, or of no size
    registers,
    stack,
  };
  Where where = Where::unknown;
  std::uint32_t at = 0;  ///< number in argument_registers(); bytes from the stack pointer
};

/// The registers for arguments in order: "rdi", "x0", "eax".
[[nodiscard]] std::span<const std::string_view> argument_registers(Machine machine) noexcept;
/// The register of results: "rax", "x0", "eax".
[[nodiscard]] std::string_view result_register(Machine machine) noexcept;
[[nodiscard]] std::string_view stack_register(Machine machine) noexcept;

/// Gives places to the arguments of one function, in order.
class Places {
 public:
  /// The result counts: one returned in memory takes a register for its address.
  Places(Machine machine, const Shape& result, bool varargs);
  [[nodiscard]] Place next(const Shape& shape);

 private:
  [[nodiscard]] Place x86_64(const Shape& shape);
  [[nodiscard]] Place aarch64(const Shape& shape);
  [[nodiscard]] Place i386(const Shape& shape);
  [[nodiscard]] Place floating(const Shape& shape);
  [[nodiscard]] Place in_registers(std::uint32_t count);
  [[nodiscard]] Place on_stack(std::uint32_t size, std::uint32_t alignment);

  Machine machine_;
  std::uint32_t registers_;  ///< how many there are
  std::uint32_t used_ = 0;
  std::uint32_t vectors_used_ = 0;
  std::uint32_t stack_;  ///< where the next stack argument may begin
  bool lost_ = false;    ///< a value went where we do not know
};

}  // namespace usdt::plan
