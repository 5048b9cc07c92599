// SPDX-License-Identifier: BSD-2-Clause
// Events in a recording instead of lines.
#pragma once

#include <memory>

#include "output.hpp"

namespace usdt_trace {

/// Records all of a trace, or what was last of it (--last).
[[nodiscard]] std::unique_ptr<Output> make_recorder(const usdt::AnswerStart& start, const Flags& flags,
                                                    usdt::tools::Stream& out);

}  // namespace usdt_trace
