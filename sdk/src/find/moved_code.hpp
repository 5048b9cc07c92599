// SPDX-License-Identifier: BSD-2-Clause
// Code that processes no longer run from their files. Private to find/.
#pragma once

#include <sys/types.h>

#include <vector>

#include "usdt/select.hpp"

namespace usdt::find {

/// Adds a warning to each file of `selection` some of whose points `pids` run from other memory than the file's, as
/// where text was moved to huge pages: a breakpoint in the file is not in that memory.
void warn_of_moved_code(const std::vector<pid_t>& pids, const StopToken& stop, Selection& selection);

}  // namespace usdt::find
