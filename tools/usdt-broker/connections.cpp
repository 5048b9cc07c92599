// SPDX-License-Identifier: BSD-2-Clause
#include "connections.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>

namespace usdt_broker {

std::optional<std::string> Connections::refuses(uid_t user) const {
  if (user_of_.size() >= options_.connections)
    return fmt::format("usdt-broker serves {} connections already: try again", user_of_.size());
  const auto of_user = std::ranges::count_if(user_of_, [&](const auto& each) { return each.second == user; });
  if (static_cast<std::size_t>(of_user) < options_.connections_of_user) return std::nullopt;
  return fmt::format("usdt-broker serves {} connections of user {} already: end one of these traces", of_user, user);
}

bool Connections::has(uid_t user) const {
  return std::ranges::any_of(user_of_, [&](const auto& each) { return each.second == user; });
}

std::size_t Connections::reap() {
  std::size_t killed = 0;
  int status = 0;
  for (pid_t ended = ::waitpid(-1, &status, WNOHANG); ended > 0; ended = ::waitpid(-1, &status, WNOHANG)) {
    user_of_.erase(ended);
    refusing_.erase(ended);
    killed += WIFSIGNALED(status) ? 1 : 0;
  }
  return killed;
}

}  // namespace usdt_broker
