// SPDX-License-Identifier: BSD-2-Clause
// Which processes a client may have breakpoints in. Private to serve/.
#pragma once

#include <sys/types.h>

#include "sys/unique_fd.hpp"
#include "usdt/broker_service.hpp"
#include "usdt/result.hpp"

namespace usdt::serve {

/// A process that was a client's when it was looked at. It may be somebody else's any time: at each hit the programs
/// look again (bpf/trace/owner.h).
class AllowedProcess {
 public:
  /// Errors: not_found, no_permission, with the reason, by the rule of ptrace(2).
  [[nodiscard]] static Result<AllowedProcess> check(pid_t pid, const BrokerClient& client);

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Whether it has not ended: its number then is no other's since it was looked at.
  [[nodiscard]] bool lives() const noexcept;

 private:
  AllowedProcess(pid_t pid, sys::UniqueFd fd) noexcept : pid_(pid), fd_(std::move(fd)) {}
  pid_t pid_;
  sys::UniqueFd fd_;
};

/// Refuses clients that number processes or users otherwise than this process does. Errors: not_supported.
[[nodiscard]] Result<void> check_namespaces(const BrokerClient& client);

}  // namespace usdt::serve
