// SPDX-License-Identifier: BSD-2-Clause
// The points that a question names: where to look for them, and what to say of what was found.
#pragma once

#include <vector>

#include "usdt/question_plan.hpp"

namespace usdt::session {

using Notices = std::vector<SessionNotice>;

/// Returns where to look. Children may have loaded other files; those that end meanwhile have none.
[[nodiscard]] SearchScope search_scope(const Question& question, const Subjects& subjects);

/// Fails where nobody's files would be taken for everybody's.
[[nodiscard]] Result<void> check_cgroups(const Question& question, const Subjects& subjects, const SearchScope& scope);

/// Adds how a command may start the program that is meant to an error that says that nothing was found.
[[nodiscard]] Error with_hint_at_started(Error error, const Question& question,
                                         const std::vector<PointPattern>& patterns);

/// Says what was not found, and what of it could not be read.
void report_selection(const Question& question, const std::vector<PointPattern>& patterns, const Selection& selection,
                      Notices& notices);

/// Returns what one side of spans means of a file that has points of both.
[[nodiscard]] ProbeFile side_of(const std::vector<PointPattern>& patterns, ProbeFile file);

}  // namespace usdt::session
