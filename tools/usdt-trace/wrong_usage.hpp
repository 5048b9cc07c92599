// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>
#include <utility>

#include "usdt/usdt.hpp"

namespace usdt_trace {

/// Fails: a command line, or a script, asks for something that cannot be meant.
[[nodiscard]] inline auto wrong(std::string why) {
  return usdt::fail(usdt::ErrorKind::invalid_argument, std::move(why));
}

}  // namespace usdt_trace
