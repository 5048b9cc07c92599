// SPDX-License-Identifier: BSD-2-Clause
// A question in words, as pages show it above its answers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "usdt/question.hpp"

namespace usdt::exports {

/// Returns what was asked, part by part: what the part is about, and how it was written. `probes`: what the plan has,
/// where the question names none, as a replay of all that a recording has.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> asked_text(const Question& question,
                                                                          const std::string& probes);

}  // namespace usdt::exports
