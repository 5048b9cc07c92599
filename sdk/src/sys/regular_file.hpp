// SPDX-License-Identifier: BSD-2-Clause
// Opening a file by a name that others chose: opening a device, a FIFO or a terminal can act on it, or wait for ever.
#pragma once

#include <sys/stat.h>

#include "sys/unique_fd.hpp"

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

}  // namespace usdt::sys
