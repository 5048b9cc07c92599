// SPDX-License-Identifier: BSD-2-Clause
// At which ends of a call a program runs, and how it comes to run at a return. The numbers are shared with BPF programs
// (usdt/bpf/spec.h). Threads: plain values.
#pragma once

#include <cstdint>

namespace usdt {
inline namespace v1 {

/// Tells at which ends of a call a program runs, with the numbers of enum usdt_moment (spec.h).
enum class Moment : std::uint8_t {
  entry = 1,  ///< when the function is called; also at what has no end: a USDT site, a tracepoint
  exit = 2,   ///< when the function returns
  both = 3,   ///< at the entry and at the return: one event a call, with its duration
};

/// Tells how a program comes to run when a function returns, and how calls are told apart, with the numbers of enum
/// usdt_return_by (spec.h).
enum class ReturnBy : std::uint8_t {
  probe = 0,          ///< the kernel replaces the return address, by which programs that move their stacks die
  instruction = 1,    ///< before each RET instruction of the function; calls that end otherwise are not seen to end
  goroutine_ret = 2,  ///< before each RET of a function of Go, whose calls belong to goroutines and not to threads
  any_instruction =
      3,  ///< also those of functions that it jumps to, which others call: the caller tells whose end it is
};

}  // namespace v1
}  // namespace usdt
