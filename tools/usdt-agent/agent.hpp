// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "options.hpp"

namespace usdt_agent {

/// Asks all questions until a signal asks for the end. Returns the exit code.
[[nodiscard]] int run(const Options& options);
/// Reads all files and says where the answers to their questions would go. Returns the exit code.
[[nodiscard]] int check(const Options& options);

}  // namespace usdt_agent
