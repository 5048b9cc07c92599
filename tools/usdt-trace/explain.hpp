// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <vector>

#include "flags.hpp"
#include "io/stream.hpp"
#include "usdt/explanation.hpp"

namespace usdt_trace {

/// --explain: says what the command line would attach, read and cost. Needs no privilege, and attaches nothing. Returns
/// the exit code.
[[nodiscard]] int explain(const std::vector<Flags>& questions);

void write_text(const usdt::Explanation& explanation, const Flags& flags, usdt::io::Stream& out);
/// One object for each of usdt::Explanation::sites, then one with the rest (docs/json.md).
void write_json(const usdt::Explanation& explanation, const Flags& flags, usdt::io::Stream& out);

}  // namespace usdt_trace
