// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "flags.hpp"

namespace usdt_trace {

/// Shows a recording. Returns the exit code.
[[nodiscard]] int replay(const Flags& flags);

}  // namespace usdt_trace
