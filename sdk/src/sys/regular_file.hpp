// SPDX-License-Identifier: BSD-2-Clause
// Opening a file by a name that others chose: opening a device, a FIFO or a terminal can act on it, or wait for ever.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sys/unique_fd.hpp"
#include "usdt/result.hpp"

namespace usdt::sys {

struct RegularFile {
  UniqueFd fd;        ///< none where it could not be opened or is no regular file
  struct stat st {};  ///< of the inode that was found; st_mode is 0 where there is none
  int error = 0;      ///< errno; EINVAL for what is no regular file
};

/// Opens `path` (relative to the directory descriptor `dir`, or AT_FDCWD) for reading if it is a regular file. Anything
/// else is looked at and never opened, whatever the name is made to point to meanwhile: what is opened is the inode
/// that fstat(2) has judged. Never waits for a FIFO's writer or for the holder of a lease.
[[nodiscard]] RegularFile open_regular(int dir, const char* path) noexcept;
/// Why open_regular() has not opened `path`: not_supported where it is something else, which the message names.
[[nodiscard]] Error failure_of(const RegularFile& file, std::string_view path);
/// All bytes of such a file. Errors: failure_of(); limit where it has more than `most`.
[[nodiscard]] Result<std::vector<std::byte>> read_regular(const std::string& path, std::size_t most);

}  // namespace usdt::sys
