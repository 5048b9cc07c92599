// SPDX-License-Identifier: BSD-2-Clause
#include "elf/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace usdt::elf {
namespace {

const char* kind_of_inode(mode_t mode) noexcept {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode)) return "a character device";
  if (S_ISBLK(mode)) return "a block device";
  return "of unknown kind";
}

bool same_time(const timespec& a, const timespec& b) noexcept { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

}  // namespace

Result<File> File::open(const std::filesystem::path& path) {
  // O_NONBLOCK: a FIFO without a writer must not hold us up before fstat can tell what it is.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    // A socket cannot be opened at all; say what it is, not "No such device or address".
    if (errno == ENXIO) return fail(ErrorKind::not_supported, fmt::format("{}: not a regular file", path.string()));
    return fail(os_failure(ErrorKind::io, path.string(), errno));
  }
  File file(fd, {});
  if (::fstat(fd, &file.at_open_) != 0) return fail(os_failure(ErrorKind::io, path.string(), errno));
  if (!S_ISREG(file.at_open_.st_mode)) {
    return fail(ErrorKind::not_supported,
                fmt::format("{}: {}, not a regular file", path.string(), kind_of_inode(file.at_open_.st_mode)));
  }
  return file;
}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

bool File::unchanged() const noexcept {
  struct stat now {};
  return ::fstat(fd_, &now) == 0 && now.st_size == at_open_.st_size && same_time(now.st_mtim, at_open_.st_mtim) &&
         same_time(now.st_ctim, at_open_.st_ctim);
}

bool File::same_inode(const File& other) const noexcept {
  return at_open_.st_dev == other.at_open_.st_dev && at_open_.st_ino == other.at_open_.st_ino;
}

std::size_t File::read(std::uint64_t offset, std::span<std::uint8_t> out) const noexcept {
  if (offset >= size()) return 0;
  out = out.first(static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), size() - offset)));
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = ::pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

Bytes File::bytes(std::uint64_t offset, std::uint64_t size) const {
  if (offset >= this->size()) return {};
  Bytes out(static_cast<std::size_t>(std::min({size, this->size() - offset, kMaxRead})));
  out.resize(read(offset, out));
  return out;
}

}  // namespace usdt::elf
