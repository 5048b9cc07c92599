// SPDX-License-Identifier: BSD-2-Clause
// Scripts that nobody has named one by one, out of a directory that others may write to.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <string>

#include "usdt/result.hpp"

namespace usdt::tools {

/// Reads a regular file of at most kMostScriptBytes: a FIFO would be waited for, and a device may have no end.
/// `why_not`, if set, says of the open file why it is not taken; empty: it is. Errors: not_found, io, limit;
/// no_permission (the system's, or that of `why_not`); invalid_argument (it is no regular file).
[[nodiscard]] Result<std::string> read_script_file(const std::string& path,
                                                   const std::function<std::string(const struct stat&)>& why_not = {});

}  // namespace usdt::tools
