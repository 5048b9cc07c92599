// SPDX-License-Identifier: BSD-2-Clause
// What tracing takes, and what this user has of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/stream.hpp"
#include "usdt/privilege.hpp"

namespace usdt::tools {

/// Prints a line for each right and for the token, and the command that gives the rights that are missing. Returns
/// whether this user may trace, be it own processes alone, through usdt-broker.
bool print_rights(const std::vector<Right>& rights, const std::optional<BpfToken>& token, io::Stream& out);

/// Returns the command by which `program` gets what is missing of `rights`, but for CAP_SYS_ADMIN where little is lost
/// without; empty: nothing is missing, or no command helps (a user namespace, a container's root).
[[nodiscard]] std::string command_for_rights(const std::vector<Right>& rights, const std::string& program);

}  // namespace usdt::tools
