// SPDX-License-Identifier: BSD-2-Clause
// The state of the agent, as it tells systemd (sd_notify(3)): datagrams to the socket that $NOTIFY_SOCKET names.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace usdt_agent {

class ServiceManager {
 public:
  /// Takes what the environment says; without a socket everything below does nothing.
  ServiceManager();
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  void say_ready() const { send("READY=1"); }
  void say_stopping() const { send("STOPPING=1"); }
  /// Files are read again, until say_ready().
  void say_reloading() const;
  /// A line that `systemctl status` shows.
  void say_status(std::string_view text) const;
  /// Says that the agent works, as often as systemd wants to hear it ($WATCHDOG_USEC).
  void say_alive();

 private:
  void send(const std::string& text) const;

  int socket_ = -1;
  std::optional<std::chrono::microseconds> alive_every_ = {};
  std::chrono::steady_clock::time_point said_alive_ = {};
};

}  // namespace usdt_agent
