// SPDX-License-Identifier: BSD-2-Clause
// Tracing without privileges: usdt-broker, a service with the rights to trace, loads the stock programs and attaches
// them to processes of whoever asks, and to nobody else's (docs/broker.md). Everything else a Tracer does itself.
//     auto broker = usdt::Broker::connect();
//     if (!broker) return fail(broker.error());
//     const usdt::FeatureChoice choice{.known = (*broker)->features()};
//     const usdt::FeatureScope scope(choice);                          // plan for what this kernel can do
//     auto tracer = usdt::Tracer::start(plan, {.broker = *broker});
// Threads: any, at once; requests are answered one after the other.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/features.hpp"
#include "usdt/result.hpp"

namespace usdt::broker {
struct Inside;
}  // namespace usdt::broker

namespace usdt {
inline namespace v1 {

/// Holds a connection to usdt-broker. What was attached through it stays attached when it is closed, until its Link
/// goes.
class Broker {
 public:
  /// The socket of the service, unless it is told another.
  static constexpr std::string_view kSocket = "/run/usdt-broker/socket";

  /// Connects to the service at `socket`, and says who asks: the kernel tells the service the user. Errors: not_found
  /// (there is no such socket, or nobody listens), no_permission (the socket is not for this user), not_supported
  /// (another version of the protocol; a kernel on which the service cannot keep users apart), limit (too many
  /// connections of this user), io.
  [[nodiscard]] static Result<std::shared_ptr<Broker>> connect(const std::filesystem::path& socket = kSocket);
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;
  ~Broker();

  /// Returns what the service knows of the kernel, for FeatureChoice::known.
  [[nodiscard]] const std::vector<FeatureState>& features() const noexcept;
  /// Returns the version of the service.
  [[nodiscard]] const std::string& version() const noexcept;

 private:
  struct Impl;
  friend struct broker::Inside;
  explicit Broker(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace usdt
