// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "usdt/result.hpp"

namespace usdt_broker {

/// Leaves this process, and nothing else, the system calls that serving a connection takes: BPF, the connection, files
/// that are read, memory, time. The kernel kills it at any other one (seccomp(2)). It is for a process that has no way
/// to get more rights (PR_SET_NO_NEW_PRIVS). Errors: io.
[[nodiscard]] usdt::Result<void> allow_serving_alone();

}  // namespace usdt_broker
