// SPDX-License-Identifier: BSD-2-Clause
#include "sys/read.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "sys/unique_fd.hpp"

namespace usdt::sys {

ssize_t read_some(int fd, std::span<char> room) noexcept {
  ssize_t n = -1;
  do {
    n = ::read(fd, room.data(), room.size());
  } while (n < 0 && errno == EINTR);
  return n;
}

std::size_t read_at(int fd, std::uint64_t offset, std::span<std::byte> room) noexcept {
  std::size_t done = 0;
  while (done < room.size()) {
    const ssize_t n = ::pread(fd, room.data() + done, room.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

Result<std::string> read_text(const std::string& path, std::size_t most) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(os_failure(ErrorKind::io, path, errno));
  constexpr std::size_t kBlock = 1 << 14;
  std::string text;
  for (std::size_t size = 0;;) {
    text.resize(std::min(most, size + kBlock));
    const ssize_t n = read_some(fd.get(), std::span(text).subspan(size));
    if (n < 0) return fail(os_failure(ErrorKind::io, path, errno));
    size += static_cast<std::size_t>(n);
    if (n == 0 || size == most) {
      text.resize(size);
      return text;
    }
  }
}

}  // namespace usdt::sys
