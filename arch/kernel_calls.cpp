// SPDX-License-Identifier: BSD-2-Clause
#include "arch/kernel_calls.hpp"

#include <algorithm>

namespace usdt::arch {
namespace {

/// xmm0 to xmm7, v0 to v7.
constexpr std::uint32_t kVectorRegisters = 8;

bool is_structure(const Shape& shape) { return shape.kind == Shape::Kind::structure; }
bool is_float(const Shape& shape) { return shape.kind == Shape::Kind::floating; }

/// Whether the caller passes the address of room for the result like a first argument. arm64 has x8 for it.
bool returns_in_memory(Machine machine, const Shape& result) {
  if (!is_structure(result)) return false;
  if (machine == Machine::x86_64) return result.size > 16 || result.packed;
  if (machine == Machine::riscv64) return result.size > 16;
  // ix86_return_in_memory: BLKmode, which all are that have a part without a machine mode (compute_record_mode).
  return machine == Machine::i386 && result.blocks;
}

}  // namespace

Places::Places(const Arch& arch, const Shape& result, bool varargs)
    : arch_(arch),
      registers_(static_cast<std::uint32_t>(arch.kernel_calls.arguments.size())),
      stack_(arch.entry_frame) {
  const Machine machine = arch.machine;
  if (machine == Machine::i386 && varargs) registers_ = 0;  // init_cumulative_args: nothing in registers
  if (machine == Machine::i386 && is_structure(result) && result.size == 0) lost_ = true;  // GCC and Clang differ
  if (!returns_in_memory(machine, result)) return;
  if (registers_ == 0) {
    stack_ += 4;
  } else {
    used_ = 1;
  }
}

Place Places::next(const Shape& shape) {
  if (shape.kind == Shape::Kind::unknown) lost_ = true;
  // A struct of floats is split between vector and other registers, or is not.
  if (is_structure(shape) && shape.floats && shape.size <= 16 * (arch_.machine == Machine::aarch64 ? 4 : 1))
    lost_ = true;
  if (lost_) return {};
  if (shape.size == 0) return {.where = Place::Where::elsewhere};  // empty structs of C are not passed
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

Place Places::x86_64(const Shape& shape) {
  if (is_float(shape)) return shape.size > 8 ? on_stack(shape.size, 16) : floating(shape);
  const std::uint32_t alignment = is_structure(shape) ? shape.alignment : shape.size;
  const bool in_memory = shape.size > 16 || (is_structure(shape) && shape.packed);
  const std::uint32_t count = units_of(shape.size, 8);
  // Clang before 18 begins an __int128 that does not fit in the last register (LLVM D158169), GCC does not.
  if (!is_structure(shape) && count == 2 && used_ + count > registers_) lost_ = true;
  // A value that does not fit leaves the registers to later arguments.
  if (in_memory || used_ + count > registers_) return on_stack(shape.size, alignment);
  return in_registers(count);
}

Place Places::aarch64(const Shape& shape) {
  if (is_float(shape)) return floating(shape);
  const std::uint32_t alignment = is_structure(shape) ? shape.alignment : shape.size;
  const bool by_address = is_structure(shape) && shape.size > 16;   // B.4: of a copy
  if (alignment == 16 && !by_address) used_ = (used_ + 1) / 2 * 2;  // C.10
  const std::uint32_t count = by_address ? 1 : units_of(shape.size, 8);
  if (used_ + count <= registers_) return in_registers(count);
  used_ = registers_;  // C.13: later arguments get none
  return by_address ? on_stack(8, 8) : on_stack(shape.size, alignment);
}

/// The kernel is compiled for lp64, without floating-point registers: what others pass there is a number like all.
Place Places::riscv64(const Shape& shape) {
  const std::uint32_t alignment = is_structure(shape) ? shape.alignment : shape.size;
  const bool by_address = shape.size > 16;
  const std::uint32_t count = by_address ? 1 : units_of(shape.size, 8);
  if (used_ == registers_) return by_address ? on_stack(8, 8) : on_stack(shape.size, alignment);
  const std::uint32_t left = registers_ - used_;
  if (count > left) static_cast<void>(on_stack(8, 8));  // the second half of it
  return in_registers(std::min(count, left));
}

Place Places::i386(const Shape& shape) {
  if (is_float(shape)) return on_stack(shape.size, 4);
  const std::uint32_t count = units_of(shape.size, 4);
  if (used_ + count <= registers_) return in_registers(count);
  used_ = registers_;  // later arguments get none
  return on_stack(shape.size, 4);
}

Place Places::floating(const Shape& shape) {
  if (vectors_used_ == kVectorRegisters) return on_stack(shape.size, shape.size);
  ++vectors_used_;
  return {.where = Place::Where::elsewhere};
}

Place Places::in_registers(std::uint32_t count) {
  const Place place{.where = Place::Where::registers, .at = used_};
  used_ += count;
  return place;
}

Place Places::on_stack(std::uint32_t size, std::uint32_t alignment) {
  const std::uint32_t word = arch_.word_size;
  const std::uint32_t first = arch_.entry_frame;  // alignment counts from where the first argument is
  const std::uint32_t step = alignment > 8 && word == 8 ? 16 : word;
  const std::uint32_t at = first + units_of(stack_ - first, step) * step;
  stack_ = at + units_of(size, word) * word;
  return {.where = Place::Where::stack, .at = at};
}

}  // namespace usdt::arch
