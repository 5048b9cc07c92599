// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <vector>

#include "flags.hpp"

namespace usdt_trace {

/// One run of the tool from parsed flags to its exit code: a session of all questions, live or of a recording.
[[nodiscard]] int run(const std::vector<Flags>& questions);

}  // namespace usdt_trace
