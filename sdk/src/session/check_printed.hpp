// SPDX-License-Identifier: BSD-2-Clause
// Checks of print lists against what a plan has.
#pragma once

#include <string>

#include "usdt/plan.hpp"
#include "usdt/print_list.hpp"
#include "usdt/question.hpp"

namespace usdt::session {

/// Whether some probe has this list.
[[nodiscard]] bool is_used(const Printed& printed, ListNumber number);

/// "fentry:vfs_read(struct file *file, ...); ...": the first few signatures of the probes that have list `number`.
[[nodiscard]] std::string what_there_is(const AttachPlan& plan, const Printed& printed, ListNumber number);

/// Says whether each item of a list is at some site. Errors: invalid_argument.
[[nodiscard]] Result<void> check_list(const Question& question, const AttachPlan& plan, const Printed& printed,
                                      ListNumber number);

}  // namespace usdt::session
