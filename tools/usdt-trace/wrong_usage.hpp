// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>
#include <utility>

#include "usdt/usdt.hpp"

namespace usdt_trace {

/// What the command line, or a script, asks for cannot be meant.
[[nodiscard]] inline auto wrong(std::string why) {
  return usdt::fail(usdt::ErrorKind::invalid_argument, std::move(why));
}

}  // namespace usdt_trace
