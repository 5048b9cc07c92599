// SPDX-License-Identifier: BSD-2-Clause
#include "arch/user_calls.hpp"

#include <algorithm>
#include <optional>

#include "arch/instruction_sets.hpp"
#include "arch/kernel_calls.hpp"

namespace usdt::arch {
namespace {

using Where = UserPlace::Where;
using Kind = UserShape::Kind;

/// The classes of 3.2.3 that matter here; COMPLEX_X87 leads to nothing we know.
enum class Class : std::uint8_t { none, integer, sse, sse_up, x87, x87_up, memory, unknown };

/// Returns the class of an eightbyte that values of two classes share.
Class merge(Class one, Class other) {
  if (one == other || other == Class::none) return one;
  if (one == Class::none) return other;
  for (const Class first : {Class::unknown, Class::memory, Class::integer})
    if (one == first || other == first) return first;
  const auto is_x87 = [](Class each) { return each == Class::x87 || each == Class::x87_up; };
  return is_x87(one) || is_x87(other) ? Class::memory : Class::sse;
}

/// Returns the class of a scalar's first eightbyte, or of a later one.
Class class_of(const Scalar& scalar, bool first) {
  switch (scalar.kind) {
    case Scalar::Kind::integer:
      return Class::integer;
    case Scalar::Kind::floating:
      return Class::sse;
    case Scalar::Kind::vector:
      return first ? Class::sse : Class::sse_up;
    case Scalar::Kind::x87:
      return first ? Class::x87 : Class::x87_up;
    case Scalar::Kind::other:
      break;
  }
  return Class::unknown;
}

/// Corrects second halves that do not follow their first half: 5 (b) and (d) of the algorithm.
void clean_up(std::vector<Class>& classes) {
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const Class before = i > 0 ? classes[i - 1] : Class::none;
    if (classes[i] == Class::x87_up && before != Class::x87) classes[i] = Class::memory;
    if (classes[i] == Class::sse_up && before != Class::sse && before != Class::sse_up) classes[i] = Class::sse;
  }
}

/// GCC counts bit-fields that have no name, Clang does not, and debug information leaves them out: where there are
/// others, what nothing else fills may be such.
bool may_have_nameless_bits(const UserShape& shape, const std::vector<Class>& classes) {
  if (!shape.bit_fields) return false;
  for (std::uint32_t i = 0; i < classes.size(); ++i) {
    std::uint32_t filled = 0;
    for (const Scalar& each : shape.scalars)
      if (each.offset < 8 * i + 8 && each.offset + each.size > 8 * i) filled += each.size;
    if (classes[i] == Class::none || (classes[i] == Class::sse && filled < 8)) return true;
  }
  return false;
}

/// One class for each of a value's eightbytes; a single `memory` or `unknown` says it of the whole.
std::vector<Class> eightbytes(const UserShape& shape) {
  if (shape.size > 16 || shape.misaligned) return {Class::memory};
  std::vector<Class> classes(units_of(shape.size, 8), Class::none);
  for (const Scalar& scalar : shape.scalars) {
    const std::uint32_t first = scalar.offset / 8;
    for (std::uint32_t at = first; at * 8 < scalar.offset + scalar.size && at < classes.size(); ++at)
      classes[at] = merge(classes[at], class_of(scalar, at == first));
  }
  clean_up(classes);
  if (may_have_nameless_bits(shape, classes)) return {Class::unknown};
  for (const Class whole : {Class::unknown, Class::memory})
    if (std::ranges::find(classes, whole) != classes.end()) return {whole};
  return classes;
}

/// Whether a value is one to four numbers of one floating type (AAPCS64 5.9.5.1); how many.
std::optional<std::uint32_t> homogeneous_floats(const UserShape& shape) {
  const auto& scalars = shape.scalars;
  if (scalars.empty() || shape.misaligned) return std::nullopt;
  const Scalar& first = scalars.front();
  std::uint32_t end = 0;
  for (const Scalar& each : scalars) {
    if (each.kind != Scalar::Kind::floating || each.size != first.size) return std::nullopt;
    end = std::max(end, each.offset + each.size);
  }
  const std::uint32_t count = end / first.size;
  if (count > 4 || end != shape.size) return std::nullopt;
  return count;
}

bool has_other(const UserShape& shape) {
  return std::ranges::any_of(shape.scalars, [](const Scalar& each) { return each.kind == Scalar::Kind::other; });
}

/// Whether a value that may be passed member by member on riscv64 has members of which debug information leaves
/// something out, or compilers differ: bit-fields without a name, and what is not where the language puts it.
bool has_unclear_floats(const UserShape& shape) {
  if (shape.kind != Kind::structure || shape.size > 16 || shape.unions || shape.scalars.size() > 2) return false;
  if (std::ranges::none_of(shape.scalars, [](const Scalar& each) { return each.kind == Scalar::Kind::floating; }))
    return false;
  std::uint32_t end = 0;
  for (const Scalar& each : shape.scalars) {
    if (each.offset != units_of(end, each.size) * each.size) return true;
    end = each.offset + each.size;
  }
  return shape.bit_fields || shape.misaligned || shape.size != units_of(end, shape.alignment) * shape.alignment;
}

bool is_float(const UserShape& shape) {
  return shape.kind == Kind::scalar && shape.scalars.front().kind == Scalar::Kind::floating;
}
bool is_x87(const UserShape& shape) {
  return shape.kind == Kind::scalar && shape.scalars.front().kind == Scalar::Kind::x87;
}

/// The place of the next stack argument behind one of unknown alignment.
constexpr std::uint32_t kUnknownStack = UINT32_MAX;

/// Whether bytes before `offset` belong to no scalar, as before one that is aligned.
bool is_behind_gap(const UserShape& shape, std::uint32_t offset) {
  return offset != 0 && std::ranges::none_of(shape.scalars, [offset](const Scalar& each) {
           return each.offset < offset && each.offset + each.size >= offset;
         });
}

/// How a value of x86-64 is aligned on the stack, to 8 or to 16 bytes. Debug information does not tell of a struct
/// whether it is packed, and so not aligned to what its members are: nothing where its layout does not show it.
std::optional<std::uint32_t> alignment_on_stack(const UserShape& shape) {
  constexpr std::uint32_t word = 8, wide = 16;
  if (shape.alignment <= word || shape.size % wide != 0) return word;
  if (shape.kind != Kind::structure) return wide;
  if (shape.misaligned || shape.bit_fields || shape.size > UserShape::flat_size) return std::nullopt;
  const bool is_natural =
      is_behind_gap(shape, shape.size) || std::ranges::any_of(shape.scalars, [&](const Scalar& each) {
        return each.size == wide && is_behind_gap(shape, each.offset);
      });
  return is_natural ? std::optional(wide) : std::nullopt;
}

/// Takes the registers of a value of these classes, beginning at `general` and `vectors`.
UserPlace by_classes(const std::vector<Class>& classes, std::uint32_t size, std::span<const RegisterId> general,
                     std::span<const RegisterId> vectors) {
  UserPlace place{.where = Where::registers, .stack = 0, .parts = {}};
  std::uint32_t offset = 0;
  for (const Class each : classes) {
    auto& from = each == Class::sse ? vectors : general;
    if (each == Class::integer || each == Class::sse) {
      place.parts.push_back({offset, std::min(8U, size - offset), from.front()});
      from = from.subspan(1);
    }
    offset += 8;
  }
  return place;
}

/// Whether values of this type are placed here at all, as arguments or as results.
bool is_placeable(const UserShape& shape) {
  if (shape.kind == Kind::unknown || shape.kind == Kind::nothing) return false;
  if (shape.kind == Kind::by_reference) return true;
  return !has_other(shape) && !shape.overaligned;
}

/// Whether a result is written to room of the caller's. Nothing: not known.
std::optional<bool> returned_in_memory(Machine machine, const UserShape& shape) {
  if (shape.kind == Kind::by_reference) return true;
  if (shape.kind == Kind::nothing) return false;
  if (!is_placeable(shape)) return std::nullopt;
  if (shape.kind == Kind::scalar && shape.scalars.size() == 1) return false;
  switch (machine) {
    case Machine::x86_64:
      return shape.size > 0 && eightbytes(shape).front() == Class::memory;  // an empty struct of GNU C is nowhere
    case Machine::i386:
      if (shape.kind == Kind::scalar || shape.empty) return std::nullopt;  // complex numbers
      return true;
    case Machine::riscv64:
      return shape.size > 16;
    case Machine::aarch64:
      break;
  }
  return shape.size > 16 && !homogeneous_floats(shape);
}

}  // namespace

UserPlaces::UserPlaces(const Arch& arch, const UserShape& result, UserConvention convention)
    : arch_(arch), convention_(convention), stack_(arch.entry_frame) {
  const auto in_memory = returned_in_memory(arch.machine, result);
  if (!in_memory) {
    lost_ = arch.machine != Machine::aarch64;
  } else if (*in_memory && (arch.machine == Machine::x86_64 || arch.machine == Machine::riscv64)) {
    general_ = 1;
  } else if (*in_memory && arch.machine == Machine::i386) {
    if (convention != UserConvention::standard) lost_ = true;
    stack_ += 4;
  }
}

UserPlace UserPlaces::lose() {
  lost_ = true;
  return {};
}

UserPlace UserPlaces::next(const UserShape& shape) {
  if (lost_ || !is_placeable(shape)) return lose();
  // Compilers differ about empty classes of C++ everywhere but here.
  if (shape.empty || shape.size == 0) {
    if (arch_.machine == Machine::x86_64) return {.where = Where::nowhere, .stack = 0, .parts = {}};
    return lose();
  }
  if (shape.kind == Kind::by_reference) return address(shape);
  switch (arch_.machine) {
    case Machine::x86_64:
      return x86_64(shape);
    case Machine::aarch64:
      return aarch64(shape);
    case Machine::riscv64:
      return riscv64(shape);
    case Machine::i386:
      break;
  }
  return i386(shape);
}

UserPlace UserPlaces::x86_64(const UserShape& shape) {
  if (is_x87(shape)) return on_stack(16, 16);
  const auto classes = eightbytes(shape);
  if (classes.front() == Class::unknown) return lose();
  if (classes.front() == Class::memory || classes.front() == Class::x87) return on_stack(shape);
  const auto count = [&classes](Class wanted) {
    return static_cast<std::uint32_t>(std::ranges::count(classes, wanted));
  };
  const auto& calls = arch_.user_calls;
  const bool fits = general_ + count(Class::integer) <= calls.arguments.size() &&
                    vectors_ + count(Class::sse) <= calls.vectors.size();
  // Clang before 18 begins an __int128 that does not fit in the last register (LLVM D158169), GCC does not.
  if (!fits && shape.kind == Kind::scalar && count(Class::integer) == 2) return lose();
  // A value that does not fit leaves the registers to later arguments.
  if (!fits) return on_stack(shape);
  UserPlace place = by_classes(classes, shape.size, calls.arguments.subspan(general_), calls.vectors.subspan(vectors_));
  general_ += count(Class::integer);
  vectors_ += count(Class::sse);
  return place;
}

UserPlace UserPlaces::aarch64(const UserShape& shape) {
  if (is_x87(shape)) return lose();
  if (homogeneous_floats(shape)) return in_vectors(shape);
  if (shape.kind == Kind::structure && shape.size > 16) return address(shape);  // B.4: of a copy
  if (shape.misaligned) return lose();
  if (shape.alignment == 16) general_ = (general_ + 1) / 2 * 2;  // C.10
  if (general_ + units_of(shape.size, 8) <= arch_.user_calls.arguments.size()) return in_general(shape.size);
  general_ = static_cast<std::uint32_t>(arch_.user_calls.arguments.size());  // C.13: later arguments get none
  return on_stack(shape.size, shape.alignment);
}

UserPlace UserPlaces::riscv64(const UserShape& shape) {
  if (is_x87(shape)) return lose();
  if (has_unclear_floats(shape)) return lose();
  if (auto place = member_by_member(shape)) return *std::move(place);
  if (shape.size > 16) return address(shape);
  if (shape.misaligned && shape.alignment > 8) return lose();
  const auto registers = static_cast<std::uint32_t>(arch_.user_calls.arguments.size());
  if (general_ == registers) return on_stack(shape.size, shape.alignment);
  const std::uint32_t in_registers = std::min(shape.size, 8 * (registers - general_));
  UserPlace place = in_general(in_registers);
  if (const std::uint32_t rest = shape.size - in_registers; rest != 0)
    place.parts.push_back({in_registers, rest, RegisterId::none, on_stack(rest, 8).stack});
  return place;
}

/// A number in a floating-point register, or a struct of one or two such, or of one and an integer, where there are
/// registers for all of it. All else is passed as integers are.
std::optional<UserPlace> UserPlaces::member_by_member(const UserShape& shape) {
  const auto& calls = arch_.user_calls;
  const auto in_vector = [](const Scalar& each) { return each.kind == Scalar::Kind::floating && each.size <= 8; };
  const auto& scalars = shape.scalars;
  const bool fits = !scalars.empty() && scalars.size() <= 2 && !shape.unions &&
                    std::ranges::all_of(scalars, [](const Scalar& each) { return each.size <= 8; });
  const auto floats = static_cast<std::uint32_t>(std::ranges::count_if(scalars, in_vector));
  const auto others = static_cast<std::uint32_t>(scalars.size()) - floats;
  if (!fits || floats == 0 || vectors_ + floats > calls.vectors.size() || general_ + others > calls.arguments.size())
    return std::nullopt;
  UserPlace place{.where = Where::registers, .stack = 0, .parts = {}};
  for (const Scalar& each : scalars)
    place.parts.push_back(
        {each.offset, each.size, in_vector(each) ? calls.vectors[vectors_++] : calls.arguments[general_++]});
  return place;
}

UserPlace UserPlaces::i386(const UserShape& shape) {
  // GCC aligns only what holds vectors or 128-bit numbers.
  if (shape.alignment > 8) return lose();
  if (convention_ == UserConvention::standard) return on_stack(shape.size, 4);
  const bool word = shape.kind == Kind::scalar && !is_float(shape) && !is_x87(shape) && shape.size <= 4;
  const std::uint32_t registers = convention_ == UserConvention::fastcall ? 2 : 1;
  if (general_ == registers) return on_stack(shape.size, 4);
  if (!word) return lose();
  const auto reg = arch_.dwarf_registers[1U + general_++];  // ecx, edx
  return {.where = Where::registers, .stack = 0, .parts = {{0, shape.size, reg}}};
}

UserPlace UserPlaces::address(const UserShape&) {
  const auto& registers = arch_.user_calls.arguments;
  if (convention_ != UserConvention::standard) return lose();
  if (general_ < registers.size())
    return {.where = Where::address_in_register, .stack = 0, .parts = {{0, arch_.word_size, registers[general_++]}}};
  UserPlace place = on_stack(arch_.word_size, arch_.word_size);
  place.where = Where::address_on_stack;
  return place;
}

UserPlace UserPlaces::in_vectors(const UserShape& shape) {
  const std::uint32_t size = shape.scalars.front().size;
  const std::uint32_t count = shape.size / size;
  const auto& registers = arch_.user_calls.vectors;
  if (vectors_ + count > registers.size()) {
    vectors_ = static_cast<std::uint32_t>(registers.size());  // C.3
    return on_stack(shape.size, shape.alignment);
  }
  UserPlace place{.where = Where::registers, .stack = 0, .parts = {}};
  for (std::uint32_t i = 0; i < count; ++i) place.parts.push_back({i * size, size, registers[vectors_++]});
  return place;
}

UserPlace UserPlaces::in_general(std::uint32_t size) {
  UserPlace place{.where = Where::registers, .stack = 0, .parts = {}};
  for (std::uint32_t offset = 0; offset < size; offset += 8)
    place.parts.push_back({offset, std::min(8U, size - offset), arch_.user_calls.arguments[general_++]});
  return place;
}

UserPlace UserPlaces::on_stack(const UserShape& shape) {
  constexpr std::uint32_t wide = 16;
  const auto alignment = alignment_on_stack(shape);
  // Registers are given to later arguments either way.
  if (!alignment && stack_ != kUnknownStack && (stack_ - arch_.entry_frame) % wide != 0) stack_ = kUnknownStack;
  return on_stack(shape.size, alignment.value_or(wide));
}

UserPlace UserPlaces::on_stack(std::uint32_t size, std::uint32_t alignment) {
  if (stack_ == kUnknownStack) return {};
  const std::uint32_t word = arch_.word_size;
  const std::uint32_t first = arch_.entry_frame;  // alignment counts from where the first argument is
  const std::uint32_t step = alignment > 8 && word == 8 ? 16 : word;
  const std::uint32_t at = first + units_of(stack_ - first, step) * step;
  stack_ = at + units_of(size, word) * word;
  return {.where = Where::stack, .stack = at, .parts = {}};
}

namespace {

/// A result of riscv64: where the first argument would be. One in memory is nowhere, since the address of the room for
/// it need not be in a0 any more.
UserPlace as_only_argument(const Arch& arch, const UserShape& shape) {
  UserShape nothing;
  nothing.kind = Kind::nothing;
  return UserPlaces(arch, nothing).next(shape);
}

}  // namespace

UserPlace user_result(const Arch& arch, const UserShape& shape) {
  const auto& calls = arch.user_calls;
  const auto in_memory = returned_in_memory(arch.machine, shape);
  if (!in_memory || shape.kind == Kind::nothing || shape.empty || shape.size == 0) return {};
  if (*in_memory && arch.machine == Machine::aarch64) return {};  // x8 is not kept
  if (arch.machine == Machine::riscv64) return *in_memory ? UserPlace() : as_only_argument(arch, shape);
  if (*in_memory)
    return {.where = Where::address_in_register, .stack = 0, .parts = {{0, arch.word_size, calls.result}}};
  // A struct that is one long double, too.
  if (is_x87(shape) || (arch.machine == Machine::x86_64 && eightbytes(shape).front() == Class::x87)) {
    const auto st0 = arch.machine == Machine::x86_64 ? arch.dwarf_registers[33] : arch.dwarf_registers[11];
    return {.where = Where::registers, .stack = 0, .parts = {{0, shape.size, st0}}};
  }
  const std::array general = {calls.result, calls.result_high};
  if (arch.machine == Machine::x86_64) return by_classes(eightbytes(shape), shape.size, general, calls.vectors);
  UserPlace place{.where = Where::registers, .stack = 0, .parts = {}};
  if (arch.machine == Machine::i386 && is_float(shape)) {
    place.parts.push_back({0, shape.size, arch.dwarf_registers[11]});  // st(0)
    return place;
  }
  if (const auto floats = homogeneous_floats(shape); floats && arch.machine == Machine::aarch64) {
    const std::uint32_t size = shape.scalars.front().size;
    for (std::uint32_t i = 0; i < *floats; ++i) place.parts.push_back({i * size, size, calls.vectors[i]});
    return place;
  }
  const std::uint32_t word = arch.word_size;
  if (shape.size > 2 * word) return {};
  for (std::uint32_t offset = 0; offset < shape.size; offset += word)
    place.parts.push_back({offset, std::min(word, shape.size - offset), general[offset / word]});
  return place;
}

namespace {

/// Registers of Go's ABIInternal, by DWARF number.
struct GoRegisters {
  std::span<const std::uint8_t> general;
  std::span<const std::uint8_t> vectors;
};
template <std::uint8_t First, std::size_t Count>
constexpr std::array<std::uint8_t, Count> successive() {
  std::array<std::uint8_t, Count> numbers{};
  for (std::size_t i = 0; i < Count; ++i) numbers[i] = static_cast<std::uint8_t>(First + i);
  return numbers;
}
constexpr std::array<std::uint8_t, 9> kGoX86{0, 3, 2, 5, 4, 8, 9, 10, 11};  // rax, rbx, rcx, rdi, rsi, r8 to r11
constexpr auto kGoX86Vectors = successive<17, 15>();
constexpr auto kGoArm64 = successive<0, 16>();
constexpr auto kGoArm64Vectors = successive<64, 16>();
// X10 to X17, X8, X9, X18 to X23, and the floating-point registers of these numbers.
constexpr std::array<std::uint8_t, 16> kGoRiscv64{10, 11, 12, 13, 14, 15, 16, 17, 8, 9, 18, 19, 20, 21, 22, 23};
constexpr std::array<std::uint8_t, 16> kGoRiscv64Vectors{42, 43, 44, 45, 46, 47, 48, 49,
                                                         40, 41, 50, 51, 52, 53, 54, 55};

GoRegisters go_registers(Machine machine) {
  return by_instructions(
      machine,
      [](bool) {
        return GoRegisters{kGoX86, kGoX86Vectors};
      },
      [] {
        return GoRegisters{kGoArm64, kGoArm64Vectors};
      },
      [] {
        return GoRegisters{kGoRiscv64, kGoRiscv64Vectors};
      });
}

/// Assigns registers to values one after the other.
class GoPlaces {
 public:
  explicit GoPlaces(const Arch& arch) : arch_(arch), registers_(go_registers(arch.machine)) {}

  UserPlace next(const UserShape& shape) {
    if (shape.kind == Kind::unknown || shape.kind == Kind::nothing || has_other(shape)) return {};
    if (shape.size == 0) return {.where = Where::nowhere, .stack = 0, .parts = {}};
    UserPlace place{.where = Where::registers, .stack = 0, .parts = {}};
    std::size_t general = general_;
    std::size_t vectors = vectors_;
    for (const Scalar& each : shape.scalars) {
      const bool floating = each.kind == Scalar::Kind::floating;
      if (shape.arrays || (floating ? vectors == registers_.vectors.size() : general == registers_.general.size()))
        return on_stack(shape);
      const unsigned number = floating ? registers_.vectors[vectors++] : registers_.general[general++];
      place.parts.push_back({each.offset, each.size, arch_.dwarf_registers[number]});
    }
    general_ = general;
    vectors_ = vectors;
    return place;
  }

 private:
  UserPlace on_stack(const UserShape& shape) {
    const std::uint32_t at = units_of(stack_, shape.alignment) * shape.alignment;
    stack_ = at + shape.size;
    return {.where = Where::stack, .stack = arch_.entry_frame + at, .parts = {}};
  }

  const Arch& arch_;
  GoRegisters registers_;
  std::uint32_t stack_ = 0;  ///< bytes used there
  std::size_t general_ = 0;
  std::size_t vectors_ = 0;
};

}  // namespace

std::vector<UserPlace> go_places(const Arch& arch, const std::vector<UserShape>& shapes) {
  GoPlaces places(arch);
  std::vector<UserPlace> all;
  bool known = true;
  for (const UserShape& each : shapes) {
    all.push_back(known ? places.next(each) : UserPlace());
    known = all.back().where != Where::unknown;
  }
  return all;
}

bool go_only_on_stack(const Arch& arch, const UserShape& shape) {
  return GoPlaces(arch).next(shape).where == Where::stack;
}

}  // namespace usdt::arch
