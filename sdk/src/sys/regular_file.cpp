// SPDX-License-Identifier: BSD-2-Clause
#include "sys/regular_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>

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

}  // namespace usdt::sys
