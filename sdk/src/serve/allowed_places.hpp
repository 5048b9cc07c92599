// SPDX-License-Identifier: BSD-2-Clause
// Where in files of others there may be breakpoints. Private to serve/.
#pragma once

#include "serve/allowed_files.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"

namespace usdt::serve {

/// Checks the places of a plan in `file`, which is number `number` there and not the client's. A breakpoint within an
/// instruction, or a semaphore somewhere in a program's data, changes what a program does, and a breakpoint stays where
/// it is when its process executes a setuid program that has mapped the same file. So only those are allowed that
/// planning the same probes here leads to, out of the same file, which root alone can have written. Errors:
/// no_permission (another place), those of reading the file.
[[nodiscard]] Result<void> check_places(const AttachPlan& plan, Index<PlannedFile> number, const AllowedFile& file);

}  // namespace usdt::serve
