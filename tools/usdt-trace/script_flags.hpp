// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "raw_flags.hpp"

namespace usdt_trace {

/// The questions of the script that `flags` names, each as a command line of its own: what it says itself, what the
/// script says of all, and above that `line`, which `app` has parsed. Errors as read_script() and check_needs(), and:
/// invalid_argument (an option that is none, or belongs elsewhere), with the place in the script.
[[nodiscard]] usdt::Result<std::vector<Flags>> questions_of_script(const CLI::App& app, const Flags& flags,
                                                                   const CommandLine& line);

/// Options of questions with their values.
using OptionValues = std::vector<std::pair<std::string, std::string>>;

/// Returns the questions of a script, whose text was read from `file`, and that no command line says more about.
/// `usual` holds for options about which the script says nothing. `without_privilege`: features that only root can
/// probe are taken for granted by the kernel's release. Errors: as questions_of_script(), but for those of reading.
[[nodiscard]] usdt::Result<std::vector<Flags>> parse_questions(const std::string& file, std::string_view text,
                                                               const OptionValues& usual, bool without_privilege);

}  // namespace usdt_trace
