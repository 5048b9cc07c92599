// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "flags.hpp"

namespace usdt_trace {

/// One run of the tool from parsed flags to its exit code: select, plan, attach, follow, account.
[[nodiscard]] int run(const Flags& flags);

}  // namespace usdt_trace
