// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <vector>

#include "usdt/stop.hpp"

namespace usdt::proc {

/// Every ELF file and ar archive below the directory `root`, by content, each inode once, sorted by path. Symbolic
/// links to directories are not followed; a link to a file counts where the file itself is not below `root`. Entries
/// that cannot be read are passed over, as are the kernel's own file systems (/proc, /sys ...) below `root`.
/// `progress`, if set, is called with the number of files seen so far. If `stop` is requested, returns the files found
/// until then.
[[nodiscard]] std::vector<std::filesystem::path> walk_directory(const std::filesystem::path& root,
                                                                const std::function<void(std::size_t)>& progress,
                                                                const StopToken& stop = {});

}  // namespace usdt::proc
