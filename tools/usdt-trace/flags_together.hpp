// SPDX-License-Identifier: BSD-2-Clause
// Options that make sense alone, and none together.
#pragma once

#include "raw_flags.hpp"

namespace usdt_trace {

/// Errors: invalid_argument, with what does not go with what, and why.
[[nodiscard]] usdt::Result<void> check_together(const Flags& flags, const RawFlags& raw);

}  // namespace usdt_trace
