// SPDX-License-Identifier: BSD-2-Clause
// Spans as the command line has them: "A ~~ B", and what --pair-by says of both ends.
#pragma once

#include <string>
#include <vector>

#include "usdt/usdt.hpp"

namespace usdt_trace {

/// Names of probes: where spans begin and where they end. Without spans all are among the first.
struct SpanSides {
  std::vector<std::string> begins;
  std::vector<std::string> ends;
};
/// Of "A ~~ B", or "A" "~~" "B". Errors: invalid_argument.
[[nodiscard]] usdt::Result<SpanSides> split_probes(const std::vector<std::string>& words);

/// "KEYS", "KEYS ~~ KEYS". Errors: syntax.
[[nodiscard]] usdt::Result<usdt::SpanPairing> parse_pairing(const std::string& text);

}  // namespace usdt_trace
