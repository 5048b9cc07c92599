// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>

namespace usdt {

/// Which ends of a call a program runs at: those of enum usdt_moment (spec.h).
enum class Moment : std::uint8_t {
  entry = 1,  ///< also what has no end: a USDT site, a tracepoint
  exit = 2,   ///< when the function returns
  both = 3,
};

}  // namespace usdt
