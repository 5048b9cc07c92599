// SPDX-License-Identifier: BSD-2-Clause
// BPF programs of a few instructions, written by hand, with which the kernel is asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sys/uapi.hpp"
#include "sys/unique_fd.hpp"

namespace usdt::kernel {

/// Operation codes (include/uapi/linux/bpf.h), as far as they are needed here.
enum class Op : std::uint8_t {
  load_8 = 0x71,    ///< to = *(u8 *)(from + offset)
  load_64 = 0x79,   ///< to = *(u64 *)(from + offset)
  put_64 = 0x7a,    ///< *(u64 *)(to + offset) = immediate
  store_64 = 0x7b,  ///< *(u64 *)(to + offset) = from
  wide = 0x18,      ///< to = 64 bits, in two instructions
  move = 0xbf,
  set = 0xb7,  ///< to = immediate
  add = 0x07,  ///< to += immediate
  set_bits = 0x47,
  mask = 0x5f,            ///< to &= from
  jump = 0x05,            ///< by offset
  jump_if_set_to = 0x15,  ///< to == immediate
  jump_if_not_set_to = 0x55,
  jump_if_equal = 0x1d,  ///< to == from
  jump_if_above = 0x25,  ///< to > immediate, unsigned
  call = 0x85,           ///< helper number `immediate`
  exit = 0x95,
};

class SmallProgram {
 public:
  SmallProgram& add(Op op, unsigned to = 0, unsigned from = 0, int offset = 0, std::uint32_t immediate = 0);
  SmallProgram& wide(unsigned to, std::uint64_t value);
  /// to = where the value of an array map with one element is.
  SmallProgram& map_value(unsigned to, const sys::UniqueFd& map);
  /// Puts bytes on the stack, from `offset` on; what is left of the last word is zero.
  SmallProgram& put(std::span<const char> bytes, int offset);
  [[nodiscard]] std::size_t size() const noexcept { return code_.size(); }
  /// Has the jump at `at` go to what is added next.
  void land_here(std::size_t at);

  /// `as` says what it is loaded as. Empty: the kernel does not take it.
  [[nodiscard]] sys::UniqueFd load(sys::ProgLoad as) const;

 private:
  std::vector<std::uint64_t> code_;
};

/// Runs a BPF_PROG_TYPE_SYSCALL program (5.14) once; `context` is what it reads and writes. False: it could not be run,
/// or returned something else than 0.
[[nodiscard]] bool run_program(const sys::UniqueFd& program, std::span<std::byte> context);

}  // namespace usdt::kernel
