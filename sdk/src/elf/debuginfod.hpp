// SPDX-License-Identifier: BSD-2-Clause
// Debug files from servers, for those who ask for them. Private to elf/.
#pragma once

#include <filesystem>
#include <string>

#include "usdt/elf_file.hpp"
#include "usdt/result.hpp"

namespace usdt::elf {

/// Asks the servers of $DEBUGINFOD_URLS for the debug file of a build (its id in hex), unless it was asked for before;
/// its place among what was fetched so far. Servers that failed twice are not asked again, and none for more than 64
/// files that they do not have. Takes as long as the servers do, which $DEBUGINFOD_TIMEOUT limits; both stop tokens of
/// `options` are heard within a second. Any thread. Errors: not_found (no server has it, or there are no servers),
/// not_supported (no libdebuginfod on this machine), stopped, io.
[[nodiscard]] Result<std::filesystem::path> fetch_debug_file(const std::string& build_id, const OpenOptions& options);

}  // namespace usdt::elf
