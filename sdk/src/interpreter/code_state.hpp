// SPDX-License-Identifier: BSD-2-Clause
// What became of the reading of a function's code.
#pragma once

#include <cstdint>

namespace usdt::interpreter {

enum class CodeState : std::uint8_t {
  read,
  unreadable,  ///< its memory cannot be read: the process ended, or freed it
  changed,     ///< another object, or none, is where it was at the hit
};

}  // namespace usdt::interpreter
