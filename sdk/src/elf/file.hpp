// SPDX-License-Identifier: BSD-2-Clause
// The only way bytes of a probed file reach us: pread into memory we own. Nothing is mapped, so a file that shrinks
// while it is read gives a short answer, not SIGBUS.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "sys/unique_fd.hpp"
#include "usdt/result.hpp"

namespace usdt::elf {

using Bytes = std::vector<std::uint8_t>;
using ByteView = std::span<const std::uint8_t>;

/// An open regular file. Reading is const and uses no file position, so threads may share one.
class File {
 public:
  /// Errors: not_found, no_permission, io; not_supported for anything but a regular file, which is not opened at all.
  [[nodiscard]] static Result<File> open(const std::filesystem::path& path);

  /// A file of its own with these bytes, for what is packed in another one. Errors: io.
  [[nodiscard]] static Result<File> in_memory(ByteView bytes);

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// Size in bytes when it was opened.
  [[nodiscard]] std::uint64_t size() const noexcept { return static_cast<std::uint64_t>(at_open_.st_size); }
  /// At least as many bytes as the file system keeps of it: less than size() where a sparse file is mostly holes. What
  /// may be read of a file in all is measured by this, since a size costs its writer nothing.
  [[nodiscard]] std::uint64_t stored() const noexcept;
  /// True while fstat still shows the size, mtime and ctime seen at open; of a file that lost a name the first two.
  [[nodiscard]] bool unchanged() const noexcept;
  /// Whether nobody has written to it since, as its size and the time of the last write tell. Its owner can set that
  /// time; whoever can, writes what the processes run that map it.
  [[nodiscard]] bool is_unwritten() const noexcept;
  /// True when nobody but root and who runs this can write to it.
  [[nodiscard]] bool is_trusted() const noexcept;
  /// True when both are one inode.
  [[nodiscard]] bool same_inode(const File& other) const noexcept;

  /// Fills `out` from byte `offset` on; returns how many bytes there were before the end or a read error.
  [[nodiscard]] std::size_t read(std::uint64_t offset, std::span<std::uint8_t> out) const noexcept;
  /// The first byte from `offset` on that is not in a hole of a sparse file; size() where only a hole is left. A file
  /// system that does not tell holes has none.
  [[nodiscard]] std::uint64_t data_from(std::uint64_t offset) const noexcept;
  /// The bytes [offset, offset + size), fewer where the file ends or cannot be read. Never allocates more than the
  /// file holds (stored()), whatever a header claims.
  [[nodiscard]] Bytes bytes(std::uint64_t offset, std::uint64_t size) const;

 private:
  File(sys::UniqueFd fd, const struct stat& at_open) noexcept : fd_(std::move(fd)), at_open_(at_open) {}
  [[nodiscard]] bool is_as_long_and_as_old(const struct stat& now) const noexcept;

  sys::UniqueFd fd_;
  struct stat at_open_ {};
};

}  // namespace usdt::elf
