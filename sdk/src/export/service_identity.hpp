// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "usdt/plan.hpp"

namespace usdt::exports {

/// Names whose answers they are, for who collects those of many hosts. Empty: not known.
struct ServiceIdentity {
  std::string host;     ///< its name
  std::string service;  ///< the one that all answers are of, whatever is traced
  std::string version;
  std::string container;
};

/// Returns what the environment says, as OpenTelemetry's programs are told it: OTEL_SERVICE_NAME, and of
/// OTEL_RESOURCE_ATTRIBUTES host.name, service.name, service.version and container.id. Without these the host has its
/// own name.
[[nodiscard]] ServiceIdentity identity_of_environment();

/// The services that the probes of a plan are of: that of the environment, or the file that has the probe, of a span
/// that where it begins. "usdt" are probes of the kernel and of files in memory, which are nobody's by name.
class ServiceNames {
 public:
  /// `service`: ServiceIdentity::service.
  explicit ServiceNames(std::string service) : service_(std::move(service)) {}

  void look_up(const AttachPlan& plan);
  /// Names all services so far, each once. Their numbers stay what they are.
  [[nodiscard]] const std::vector<std::string>& all() const noexcept { return all_; }
  /// Returns the number of that of a probe.
  [[nodiscard]] std::size_t of_probe(Index<PlannedProbe> probe) const { return of_probes_[probe.value]; }
  /// Returns the number of that which numbers about all probes are of: theirs if it is one, else "usdt".
  [[nodiscard]] std::size_t of_numbers() const noexcept { return of_numbers_; }

 private:
  std::size_t number_of(const std::string& name);

  std::string service_;
  std::vector<std::string> all_;
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::size_t> of_probes_;
  std::size_t of_numbers_ = 0;
};

}  // namespace usdt::exports
