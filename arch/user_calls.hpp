// SPDX-License-Identifier: BSD-2-Clause
// Places of the arguments and results of C, C++ and Go functions.
//   x86-64: System V ABI, AMD64 supplement, 3.2.3
//   i386: System V ABI, Intel386 supplement, 2.2.3, as GCC and Clang follow it on Linux:
//     every struct is returned in memory
//   arm64: Procedure Call Standard for the Arm 64-bit Architecture (IHI 0055), 6.8.2
//   riscv64: RISC-V Calling Conventions (riscv-elf-psabi-doc, riscv-cc), LP64D
// Values that compilers place differently have no known place, and neither have those behind them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "arch/arch.hpp"

namespace usdt::arch {

/// A number within a value.
struct Scalar {
  using Kind = ScalarKind;
  Kind kind = Kind::other;
  std::uint32_t offset = 0;  ///< bytes from the start of the value
  std::uint32_t size = 0;    ///< bytes
  bool pointer = false;      ///< an address of other memory
  /// Not 0: a pointer in an object of a library that is shown by its content. All pointers of one object have one
  /// number, from 1 on.
  std::uint32_t of_library = 0;
};

/// The properties of a type that its place depends on.
struct UserShape {
  enum class Kind : std::uint8_t {
    unknown,
    nothing,       ///< void; a parameter without a value
    scalar,        ///< `scalars` has it
    structure,     ///< struct, union, class; arrays in one count as their elements
    by_reference,  ///< a C++ class that is not copied as bytes: its address is passed
  };
  Kind kind = Kind::unknown;
  std::uint32_t size = 0;       ///< bytes of the value
  std::uint32_t alignment = 1;  ///< of the strictest scalar
  bool misaligned = false;      ///< a scalar lies off its alignment (packed)
  bool overaligned = false;     ///< alignas: conventions and compilers differ
  bool bit_fields = false;      ///< has some; debug information leaves out those without a name
  bool empty = false;           ///< structure: has no members
  bool unions = false;          ///< is, or has, a union
  bool arrays = false;          ///< is, or has, an array of several elements
  /// Structures: of those of at most `flat_size` bytes, all of them.
  std::vector<Scalar> scalars;

  static constexpr std::uint32_t flat_size = 64;
};

/// The place of some bytes of an argument at the first instruction, or of a result when the function has ended.
struct UserPart {
  std::uint32_t offset = 0;  ///< in the value
  std::uint32_t size = 0;
  RegisterId reg = RegisterId::none;  ///< none: on the stack
  std::uint32_t stack = 0;            ///< bytes from the stack pointer
};

struct UserPlace {
  enum class Where : std::uint8_t {
    unknown,              ///< behind or in a value that the conventions, or we, do not place
    nowhere,              ///< of no size: not passed
    registers,            ///< in `parts`; of riscv64 the second half may be on the stack
    stack,                ///< `stack` bytes from the stack pointer
    address_in_register,  ///< of its bytes in memory: parts[0]
    address_on_stack,
  };
  Where where = Where::unknown;
  std::uint32_t stack = 0;
  std::vector<UserPart> parts;
};

/// How a function is called, where that can be said otherwise than by its machine (i386: DW_AT_calling_convention).
enum class UserConvention : std::uint8_t { standard, fastcall, thiscall };

/// Gives places to the arguments of one function, in order, at its first instruction.
class UserPlaces {
 public:
  /// The result counts: one returned in memory has the room's address passed like a first argument (arm64: in x8).
  UserPlaces(const Arch& arch, const UserShape& result, UserConvention convention = UserConvention::standard);
  [[nodiscard]] UserPlace next(const UserShape& shape);

 private:
  [[nodiscard]] UserPlace x86_64(const UserShape& shape);
  [[nodiscard]] UserPlace aarch64(const UserShape& shape);
  [[nodiscard]] UserPlace riscv64(const UserShape& shape);
  [[nodiscard]] UserPlace i386(const UserShape& shape);
  [[nodiscard]] UserPlace address(const UserShape& shape);
  [[nodiscard]] UserPlace in_vectors(const UserShape& shape);
  [[nodiscard]] std::optional<UserPlace> member_by_member(const UserShape& shape);  // riscv64
  [[nodiscard]] UserPlace in_general(std::uint32_t size);
  [[nodiscard]] UserPlace on_stack(const UserShape& shape);  // x86-64
  [[nodiscard]] UserPlace on_stack(std::uint32_t size, std::uint32_t alignment);
  [[nodiscard]] UserPlace lose();

  const Arch& arch_;
  UserConvention convention_;
  std::uint32_t general_ = 0;  ///< registers used
  std::uint32_t vectors_ = 0;
  std::uint32_t stack_;  ///< where the next stack argument may begin
  bool lost_ = false;
};

/// Returns the places of a Go function's arguments at its first instruction, the receiver first, or of its results at
/// each RET instruction (ABIInternal, abi-internal.md of its compiler). Places on the stack are right for arguments
/// alone: those of results are behind them.
[[nodiscard]] std::vector<UserPlace> go_places(const Arch& arch, const std::vector<UserShape>& shapes);
/// Whether Go passes a value of this shape on the stack, whatever is passed beside it.
[[nodiscard]] bool go_only_on_stack(const Arch& arch, const UserShape& shape);

/// Returns the place of a result right after the return instruction. An address there is that of the caller's room.
[[nodiscard]] UserPlace user_result(const Arch& arch, const UserShape& shape);

}  // namespace usdt::arch
