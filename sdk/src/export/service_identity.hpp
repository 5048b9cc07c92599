// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>

#include "usdt/plan.hpp"

namespace usdt::exports {

/// Names whose answers they are, for who collects those of many hosts. Empty: not known.
struct ServiceIdentity {
  std::string host;     ///< its name
  std::string service;  ///< what is traced
  std::string version;
  std::string container;
};

/// Returns what the environment says, as OpenTelemetry's programs are told it: OTEL_SERVICE_NAME, and of
/// OTEL_RESOURCE_ATTRIBUTES host.name, service.name, service.version and container.id. Without these it is the name of
/// the host, and of the file that is traced, or "usdt" where there are several.
[[nodiscard]] ServiceIdentity identity_of(const AttachPlan& plan);

}  // namespace usdt::exports
