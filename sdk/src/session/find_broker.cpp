// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "usdt/privilege.hpp"
#include "usdt/session.hpp"

namespace usdt {
inline namespace v1 {

std::string usual_broker_socket() {
  // Who starts a setuid program does not choose who serves it.
  const char* const chosen = ::secure_getenv("USDT_BROKER");
  return chosen != nullptr && *chosen != '\0' ? chosen : std::string(Broker::kSocket);
}

Result<std::shared_ptr<Broker>> find_broker() {
  const std::string socket = usual_broker_socket();
  std::error_code unknown;
  if (!std::filesystem::exists(socket, unknown) || check_privilege(Backend::uprobe_multi))
    return std::shared_ptr<Broker>();
  return Broker::connect(socket);
}

std::string broker_text(const Broker& broker) {
  return fmt::format("through usdt-broker {}: your own processes are traced, and nobody else's", broker.version());
}

}  // namespace v1
}  // namespace usdt
