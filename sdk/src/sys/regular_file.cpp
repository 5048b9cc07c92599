// SPDX-License-Identifier: BSD-2-Clause
#include "sys/regular_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>

#include "sys/read.hpp"

namespace usdt::sys {
namespace {

// O_NONBLOCK: where another process holds a lease on the file, open(2) fails instead of waiting until it gives way.
constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

/// Opens the inode that the O_PATH descriptor `place` stands for (open(2), "O_PATH").
UniqueFd reopen(const UniqueFd& place) noexcept {
  std::array<char, 32> name{};
  fmt::format_to_n(name.data(), name.size() - 1, "/proc/self/fd/{}", place.get());
  return UniqueFd(::open(name.data(), kFlags));
}

/// Without /proc there is only the name: what it leads to now has to be what was judged.
UniqueFd open_again(int dir, const char* path, const struct stat& judged) noexcept {
  UniqueFd fd(::openat(dir, path, kFlags));
  struct stat now {};
  if (fd && (::fstat(fd.get(), &now) != 0 || now.st_dev != judged.st_dev || now.st_ino != judged.st_ino)) {
    fd.reset();
    errno = ESTALE;
  }
  return fd;
}

const char* kind_of_inode(mode_t mode) noexcept {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode)) return "a character device";
  if (S_ISBLK(mode)) return "a block device";
  return "of unknown kind";
}

}  // namespace

RegularFile open_regular(int dir, const char* path) noexcept {
  RegularFile file;
  const UniqueFd place(::openat(dir, path, O_PATH | O_CLOEXEC));
  if (!place || ::fstat(place.get(), &file.st) != 0) {
    file.error = errno;
    return file;
  }
  if (!S_ISREG(file.st.st_mode)) {
    file.error = EINVAL;
    return file;
  }
  file.fd = reopen(place);
  if (!file.fd && errno == ENOENT) file.fd = open_again(dir, path, file.st);
  if (!file.fd) file.error = errno;
  return file;
}

Error failure_of(const RegularFile& file, std::string_view path) {
  if (file.st.st_mode == 0 || S_ISREG(file.st.st_mode)) return os_failure(ErrorKind::io, path, file.error);
  return {ErrorKind::not_supported, fmt::format("{}: {}, not a regular file", path, kind_of_inode(file.st.st_mode))};
}

Result<std::vector<std::byte>> read_regular(const std::string& path, std::size_t most) {
  const RegularFile file = open_regular(AT_FDCWD, path.c_str());
  if (!file.fd) return fail(failure_of(file, path));
  const auto size = static_cast<std::uint64_t>(file.st.st_size);
  if (size > most) return fail(ErrorKind::limit, fmt::format("{} has more than {} bytes", path, most));
  std::vector<std::byte> bytes(size);
  bytes.resize(read_at(file.fd.get(), 0, bytes));
  return bytes;
}

}  // namespace usdt::sys
