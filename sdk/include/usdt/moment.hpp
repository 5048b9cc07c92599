// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>

namespace usdt {
inline namespace v1 {

/// Which ends of a call a program runs at: those of enum usdt_moment (spec.h).
enum class Moment : std::uint8_t {
  entry = 1,  ///< also what has no end: a USDT site, a tracepoint
  exit = 2,   ///< when the function returns
  both = 3,
};

/// How a program comes to run when a function returns, and how calls are told apart: those of enum usdt_return_by
/// (spec.h).
enum class ReturnBy : std::uint8_t {
  probe = 0,          ///< the kernel replaces the return address, by which programs that move their stacks die
  instruction = 1,    ///< before each RET instruction of the function; calls that end otherwise are not seen to end
  goroutine_ret = 2,  ///< the same in a Go program, whose calls are those of goroutines and not of threads
  any_instruction =
      3,  ///< also those of functions that it jumps to, which others call: the caller tells whose end it is
};

}  // namespace v1
}  // namespace usdt
