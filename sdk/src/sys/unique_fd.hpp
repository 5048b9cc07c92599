// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <unistd.h>

#include <utility>

#include "sys/separate_task.hpp"

namespace usdt::sys {

/// Owns a file descriptor, which `close_fd` closes; -1 is none.
template <void (*close_fd)(int)>
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) noexcept : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(other.release()) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~OwnedFd() { reset(); }

  void reset(int fd = -1) noexcept {
    if (fd_ >= 0) close_fd(fd_);
    fd_ = fd;
  }
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
  [[nodiscard]] int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

inline void close_now(int fd) noexcept { ::close(fd); }
inline void close_attached(int fd) noexcept { close_in_exiting_tasks({&fd, 1}); }

using UniqueFd = OwnedFd<close_now>;
/// Owns a link or a perf event: closing it takes breakpoints out of programs. close_in_exiting_tasks() closes many
/// together.
using AttachedFd = OwnedFd<close_attached>;

}  // namespace usdt::sys
