// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/types.h>

#include <string>

#include "budgets.hpp"
#include "options.hpp"
#include "usdt/broker_service.hpp"

namespace usdt_broker {

/// A user and group without rights of their own.
struct Nobody {
  uid_t uid = 0;
  gid_t gid = 0;
};
/// Errors: not_found.
[[nodiscard]] usdt::Result<Nobody> find_user(const std::string& name);

/// Serves a client in a process that was made for it, and returns its exit code. It gives up all rights but those to
/// load and attach programs before it reads a byte, and ends when `broker`, its parent, does.
[[nodiscard]] int serve_in_worker(int socket, const usdt::BrokerClient& client, const Nobody& nobody, pid_t broker,
                                  Budget& budget, const Options& options);

}  // namespace usdt_broker
