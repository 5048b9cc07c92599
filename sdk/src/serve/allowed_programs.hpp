// SPDX-License-Identifier: BSD-2-Clause
// Which programs a client may have loaded, and what may be asked of them. Private to serve/.
#pragma once

#include "broker/messages.hpp"
#include "usdt/bpf/stock_constants.h"
#include "usdt/result.hpp"

namespace usdt::serve {

/// Checks what no verifier does. The kernel's memory that programs read is in records of calls and spans that have not
/// ended, which are entries of a map: records, and texts in them, must not reach beyond those, and no other program may
/// take a number of the process's for the place of such a text. Errors: not_supported, invalid_argument.
[[nodiscard]] Result<void> check_programs(const broker::LoadRequest& request, const usdt_stock_constants& constants);

}  // namespace usdt::serve
