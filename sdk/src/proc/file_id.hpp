// SPDX-License-Identifier: BSD-2-Clause
// Which file a name leads to.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <utility>

namespace usdt::proc {

/// A file by its device and inode, as stat(2) has them.
using FileId = std::pair<dev_t, ino_t>;

/// The file that `path` leads to; nothing, with errno: none that may be looked at. The server of a network or FUSE
/// mount is not asked (AT_STATX_DONT_SYNC), which may be gone, or be somebody's program.
[[nodiscard]] inline std::optional<FileId> file_at(const std::filesystem::path& path) noexcept {
  struct statx st {};
  if (::statx(AT_FDCWD, path.c_str(), AT_STATX_DONT_SYNC, STATX_INO, &st) != 0) return std::nullopt;
  return FileId(::makedev(st.stx_dev_major, st.stx_dev_minor), st.stx_ino);
}

}  // namespace usdt::proc
