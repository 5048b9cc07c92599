// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>

#include "usdt/result.hpp"

namespace usdt_broker {

/// Holds the socket on which clients connect: the one that a service manager has handed over (sd_listen_fds(3)), or one
/// of its own, at which anybody may connect.
class Listener {
 public:
  /// Errors: io, limit, invalid_argument (what is handed over is no such socket).
  [[nodiscard]] static usdt::Result<Listener> open(const std::string& path);
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;
  /// Removes a socket of its own.
  ~Listener();

  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// Closes it, in a process that serves one client.
  void leave_to_broker() noexcept;
  /// Returns the next client's socket; below 0: there is none.
  [[nodiscard]] int accept() const;

 private:
  explicit Listener(int fd) noexcept : fd_(fd) {}
  int fd_;
  std::string own_path_;  ///< empty: it is the service manager's
};

}  // namespace usdt_broker
