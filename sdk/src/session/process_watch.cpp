// SPDX-License-Identifier: BSD-2-Clause
#include "session/process_watch.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace usdt::session {

ProcessWatch::ProcessWatch(const std::vector<pid_t>& pids) {
  for (const pid_t pid : pids) {
    const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (fd >= 0 || errno != ESRCH) watched_.push_back({pid, fd});
  }
}

ProcessWatch::~ProcessWatch() {
  for (const Watched& each : watched_)
    if (each.fd >= 0) ::close(each.fd);
}

/// A signal may end the poll, which then knows nothing.
std::vector<pid_t> ProcessWatch::living() const {
  std::vector<pid_t> pids;
  for (const Watched& each : watched_) {
    pollfd entry{each.fd, POLLIN, 0};
    if (each.fd < 0 || ::poll(&entry, 1, 0) != 1) pids.push_back(each.pid);
  }
  return pids;
}

}  // namespace usdt::session
