// SPDX-License-Identifier: BSD-2-Clause
// --sample, --max-rate and --max-overhead: what keeps a trace cheap.
#pragma once

#include "raw_flags.hpp"

namespace usdt_trace {

/// Puts them into `flags`. Errors: invalid_argument.
[[nodiscard]] usdt::Result<void> interpret_guards(Flags& flags, const RawFlags& raw);

}  // namespace usdt_trace
