// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "usdt/result.hpp"

namespace usdt::tools {

/// Names the servers that are asked for debug files, if nobody has: those of the machine's configuration. It changes
/// the environment, so call it while there is one thread. Errors: invalid_argument (no server is known).
[[nodiscard]] Result<void> name_debug_servers();

}  // namespace usdt::tools
