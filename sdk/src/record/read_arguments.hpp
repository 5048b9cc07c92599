// SPDX-License-Identifier: BSD-2-Clause
// Reads the arguments of a recording's sites. Private to record/.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.hpp"
#include "usdt/arg.hpp"

namespace usdt::record {

/// Reads a list of arguments into `args`, and adds what it is made of to `parts` (kMostParts). False: it cannot be, or
/// Event could not take for granted what it says.
[[nodiscard]] bool read_arguments(ByteReader& in, std::vector<Arg>& args, std::uint64_t& parts);

}  // namespace usdt::record
