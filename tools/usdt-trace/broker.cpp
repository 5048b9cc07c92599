// SPDX-License-Identifier: BSD-2-Clause
#include "broker.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "common/rights.hpp"
#include "notice.hpp"
#include "usdt/privilege.hpp"

namespace usdt_trace {

usdt::Result<std::shared_ptr<usdt::Broker>> find_broker(const Flags& flags) {
  std::shared_ptr<usdt::Broker> none;
  if (flags.no_broker || !flags.question.recording.replay.empty()) return none;
  const bool asked_for = !flags.broker.empty();
  const std::string socket = asked_for ? flags.broker : usdt::tools::usual_broker_socket();
  std::error_code unknown;
  if (!asked_for && (!std::filesystem::exists(socket, unknown) || usdt::check_privilege(usdt::Backend::uprobe_multi)))
    return none;
  auto broker = usdt::Broker::connect(socket);
  if (!broker) return broker;
  notice(flags,
         fmt::format("through usdt-broker {}: your own processes are traced, and nobody else's", (*broker)->version()));
  return broker;
}

usdt::Error with_hint_at_broker(usdt::Error error, const Flags& flags) {
  if (error.kind != usdt::ErrorKind::no_permission || flags.no_broker || !flags.broker.empty() ||
      usdt::check_privilege(usdt::Backend::uprobe_multi))
    return error;
  std::error_code unknown;
  const std::string socket = usdt::tools::usual_broker_socket();
  if (!std::filesystem::exists(socket, unknown))
    error.message += fmt::format(
        "; or have an administrator enable usdt-broker, which attaches to your own processes "
        "(usdt-broker(8); nothing is at {})",
        socket);
  return error;
}

}  // namespace usdt_trace
