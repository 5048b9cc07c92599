// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <vector>

#include "flags.hpp"

namespace usdt_trace {

/// Shows a recording, for each question anew. Returns the exit code.
[[nodiscard]] int replay(const std::vector<Flags>& questions);

}  // namespace usdt_trace
