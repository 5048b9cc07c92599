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

#include "usdt/result.hpp"

namespace usdt::elf {

using Bytes = std::vector<std::uint8_t>;
using ByteView = std::span<const std::uint8_t>;

/// An open regular file. Reading is const and uses no file position, so threads may share one.
class File {
 public:
  /// Errors: not_found, no_permission, io; not_supported for anything but a regular file. Never blocks on a FIFO.
  [[nodiscard]] static Result<File> open(const std::filesystem::path& path);

  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)), at_open_(other.at_open_) {}
  File& operator=(File&& other) noexcept {
    std::swap(fd_, other.fd_);
    at_open_ = other.at_open_;
    return *this;
  }
  ~File();

  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// Size in bytes when it was opened.
  [[nodiscard]] std::uint64_t size() const noexcept { return static_cast<std::uint64_t>(at_open_.st_size); }
  /// True while fstat still shows the size, mtime and ctime seen at open.
  [[nodiscard]] bool unchanged() const noexcept;
  /// True when both are one inode.
  [[nodiscard]] bool same_inode(const File& other) const noexcept;

  /// Fills `out` from byte `offset` on; returns how many bytes there were before the end or a read error.
  [[nodiscard]] std::size_t read(std::uint64_t offset, std::span<std::uint8_t> out) const noexcept;
  /// The bytes [offset, offset + size), fewer where the file ends or cannot be read. Never allocates more than the
  /// file holds, nor more than kMaxRead, whatever a header claims.
  [[nodiscard]] Bytes bytes(std::uint64_t offset, std::uint64_t size) const;

  static constexpr std::uint64_t kMaxRead = 1ULL << 30;

 private:
  File(int fd, const struct stat& at_open) noexcept : fd_(fd), at_open_(at_open) {}
  int fd_ = -1;
  struct stat at_open_ {};
};

}  // namespace usdt::elf
