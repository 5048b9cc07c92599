// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "options.hpp"
#include "usdt/broker_service.hpp"

namespace usdt_broker {

/// The processes that serve clients, and whose they are.
class Connections {
 public:
  explicit Connections(const Options& options) : options_(options) {}

  /// Why one more of this user is too many; nothing: it is not.
  [[nodiscard]] std::optional<std::string> refuses(uid_t user) const;
  void add(pid_t worker, uid_t user) { user_of_[worker] = user; }
  [[nodiscard]] bool has(uid_t user) const;
  /// A process that says to a client why it is not served.
  void add_refusing(pid_t process) { refusing_.insert(process); }
  [[nodiscard]] std::size_t refusing() const noexcept { return refusing_.size(); }
  /// Takes note of the processes that have ended. Returns how many a signal has ended, which is a bug.
  std::size_t reap();

 private:
  const Options& options_;
  std::map<pid_t, uid_t> user_of_ = {};
  std::set<pid_t> refusing_ = {};
};

}  // namespace usdt_broker
