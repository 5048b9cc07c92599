// SPDX-License-Identifier: BSD-2-Clause
// A question in words, as pages show it above its answers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "usdt/question.hpp"

namespace usdt::exports {

/// Returns what was asked, part by part: what the part is about, and how it was written. `probes`: those of the plan,
/// in words, where the question names none, as a replay of all that a recording has; `printed` likewise has its values.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> asked_text(const Question& question,
                                                                          const std::string& probes,
                                                                          const Printed& printed);

}  // namespace usdt::exports
