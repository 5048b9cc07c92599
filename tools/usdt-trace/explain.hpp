// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <vector>

#include "explanation.hpp"
#include "flags.hpp"
#include "io/stream.hpp"

namespace usdt_trace {

/// --explain: says what the command line would attach, read and cost. Needs no privilege, and attaches nothing. Returns
/// the exit code.
[[nodiscard]] int explain(const std::vector<Flags>& questions);

void write_text(const Explanation& explanation, const Flags& flags, usdt::io::Stream& out);
/// One object for each of Explanation::sites, then one with the rest (docs/json.md).
void write_json(const Explanation& explanation, const Flags& flags, usdt::io::Stream& out);

}  // namespace usdt_trace
