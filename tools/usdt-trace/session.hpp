// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <vector>

#include "flags.hpp"

namespace usdt_trace {

/// One run of the tool from parsed flags, of each question, to its exit code: select, plan, attach, follow, account.
[[nodiscard]] int run(const std::vector<Flags>& questions);

}  // namespace usdt_trace
