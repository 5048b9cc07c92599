// SPDX-License-Identifier: BSD-2-Clause
#pragma once

namespace usdt_agent {

/// The signals by which the agent is asked for something. From when this is made they come by its descriptor alone.
class WantedSignals {
 public:
  WantedSignals();
  ~WantedSignals();
  WantedSignals(const WantedSignals&) = delete;
  WantedSignals& operator=(const WantedSignals&) = delete;

  /// Returns a descriptor that is readable when one has come.
  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// Whether SIGTERM or SIGINT has come.
  [[nodiscard]] bool end_is_asked_for();
  /// Whether SIGHUP has come since the last call.
  [[nodiscard]] bool take_reload();

 private:
  void read();

  int fd_;
  bool end_ = false, reload_ = false;
};

}  // namespace usdt_agent
