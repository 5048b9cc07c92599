// SPDX-License-Identifier: BSD-2-Clause
// Encoded arguments (bpf/include/usdt/bpf/spec.h), as tests write them down.
#pragma once

#include <cstdint>
#include <vector>

#include "usdt/bpf/spec.h"

namespace usdt::test {

using Args = std::vector<usdt_arg_spec>;

inline usdt_arg_spec arg_of(unsigned kind, unsigned size, unsigned flags = 0, std::uint64_t value = 0) {
  usdt_arg_spec arg{};
  arg.value = value;
  arg.kind = static_cast<std::uint8_t>(kind);
  arg.flags = static_cast<std::uint8_t>(flags);
  arg.size = static_cast<std::uint8_t>(size);
  arg.reg = arg.index = USDT_REG_NONE;
  return arg;
}

inline usdt_arg_spec constant(std::int64_t value, unsigned size = 8, unsigned flags = 0) {
  return arg_of(USDT_ARG_CONST, size, flags, static_cast<std::uint64_t>(value));
}

/// Registers are words of pt_regs.
inline usdt_arg_spec reg(unsigned word, unsigned size = 8, unsigned flags = 0, unsigned shift = 0) {
  usdt_arg_spec arg = arg_of(USDT_ARG_REG, size, flags);
  arg.reg = static_cast<std::uint8_t>(word);
  arg.shift = static_cast<std::uint8_t>(shift);
  return arg;
}

/// `base` is USDT_REG_NONE for an address that stands alone, as behind the instruction pointer.
inline usdt_arg_spec mem(std::int64_t displacement, unsigned base, unsigned size = 8, unsigned flags = 0) {
  usdt_arg_spec arg = arg_of(USDT_ARG_MEM, size, flags, static_cast<std::uint64_t>(displacement));
  arg.reg = static_cast<std::uint8_t>(base);
  return arg;
}

inline usdt_arg_spec indexed(std::int64_t displacement, unsigned base, unsigned index, unsigned shift,
                             unsigned size = 8, unsigned flags = 0) {
  usdt_arg_spec arg = mem(displacement, base, size, flags);
  arg.index = static_cast<std::uint8_t>(index);
  arg.shift = static_cast<std::uint8_t>(shift);
  return arg;
}

}  // namespace usdt::test
