// SPDX-License-Identifier: BSD-2-Clause
#include "service_manager.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace usdt_agent {

ServiceManager::ServiceManager() {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path == nullptr || std::strlen(path) < 2 || std::strlen(path) > sizeof address.sun_path) return;
  std::memcpy(address.sun_path, path, std::strlen(path));
  if (path[0] == '@') address.sun_path[0] = '\0';  // an abstract one
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path));
  socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ >= 0 && ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    ::close(socket_);
    socket_ = -1;
  }
  const char* const limit = std::getenv("WATCHDOG_USEC");
  std::int64_t microseconds = 0;
  if (limit != nullptr && std::from_chars(limit, limit + std::strlen(limit), microseconds).ec == std::errc() &&
      microseconds > 0)
    alive_every_ = std::chrono::microseconds(microseconds / 3);
}

ServiceManager::~ServiceManager() {
  if (socket_ >= 0) ::close(socket_);
}

void ServiceManager::say_reloading() const {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t microseconds = std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
  send(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", microseconds));
}

void ServiceManager::say_status(std::string_view text) const { send(fmt::format("STATUS={}", text)); }

void ServiceManager::say_alive() {
  const auto now = std::chrono::steady_clock::now();
  if (!alive_every_ || now - said_alive_ < *alive_every_) return;
  said_alive_ = now;
  send("WATCHDOG=1");
}

/// A manager that does not listen is no reason to stop.
void ServiceManager::send(const std::string& text) const {
  if (socket_ >= 0) static_cast<void>(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL));
}

}  // namespace usdt_agent
