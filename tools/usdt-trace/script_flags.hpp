// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <vector>

#include "raw_flags.hpp"

namespace usdt_trace {

/// The questions of the script that `flags` names, each as a command line of its own: what it says itself, what the
/// script says of all, and above that `line`, which `app` has parsed. Errors as read_script() and check_needs(), and:
/// invalid_argument (an option that is none, or belongs elsewhere), with the place in the script.
[[nodiscard]] usdt::Result<std::vector<Flags>> questions_of_script(const CLI::App& app, const Flags& flags,
                                                                   const CommandLine& line);

}  // namespace usdt_trace
