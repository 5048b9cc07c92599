// SPDX-License-Identifier: BSD-2-Clause
// Processes below /proc, and the texts of their maps.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <vector>

#include "proc/maps.hpp"
#include "usdt/result.hpp"

namespace usdt::proc {

/// Why a process could not be looked into.
[[nodiscard]] Error process_error(pid_t pid, int os_error);

/// Returns the numbers that name entries of a directory below /proc.
[[nodiscard]] std::vector<pid_t> numbers_in(const std::filesystem::path& directory);

/// Returns the directory below /proc that shows the process's memory. A first thread that has ended has none, while the
/// others live on: each of them has a directory of its own below /proc too, which readdir does not show.
[[nodiscard]] std::filesystem::path directory_of(pid_t pid);

/// Returns the process that started this one, or took it over as an orphan; 0: it has ended, or has none.
[[nodiscard]] pid_t parent_of(pid_t pid);

/// Returns the processes whose parent is `pid` now.
[[nodiscard]] std::vector<pid_t> children_of(pid_t pid);

/// Whether a process ends without a signal to its parent: it was cloned so. False where that is not known.
[[nodiscard]] bool ends_silently(pid_t pid);

/// Hands the lines of a process's maps to `take`, a few at a time: the text is as long as the process likes. Errors:
/// not_found, no_permission, io.
[[nodiscard]] Result<void> read_maps(const std::filesystem::path& path, pid_t pid,
                                     const std::function<void(Mapping&)>& take);

}  // namespace usdt::proc
