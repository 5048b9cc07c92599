// SPDX-License-Identifier: BSD-2-Clause
// Which questions of a script are asked, once it is known of whom.
#pragma once

#include <string>
#include <vector>

#include "common/script.hpp"
#include "flags.hpp"

namespace usdt_trace {

/// Leaves the questions of a script that are chosen by name, and those that may stand for them.
void leave_chosen(usdt::tools::Script& script, const std::vector<std::string>& chosen);

/// Returns the chosen questions, or those that stand for them where their probes never fire, and says what is to be
/// known of them: what they cost, and on what their probes depend. `given`: names of options that the chosen ones alone
/// have. `made`: of each question of the script, in order.
[[nodiscard]] std::vector<Flags> settle_questions(const usdt::tools::Script& script,
                                                  const std::vector<std::string>& chosen,
                                                  const std::vector<std::string>& given,
                                                  const std::vector<Flags>& made);

}  // namespace usdt_trace
