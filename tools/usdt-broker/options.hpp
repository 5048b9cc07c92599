// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace usdt_broker {

inline constexpr const char* kTool = "usdt-broker";
inline constexpr int kRunTimeFailure = 1, kUsageError = 2;

/// The command line.
struct Options {
  std::string socket;             ///< where to listen, unless a service manager hands over a socket
  std::string user;               ///< who the processes are that serve clients
  std::uint32_t connections = 0;  ///< in all
  std::uint32_t connections_of_user = 0;
  std::uint64_t places_of_user = 0;     ///< within an hour
  std::uint64_t megabytes = 0;          ///< of maps, for each connection
  std::uint64_t megabytes_of_user = 0;  ///< within an hour
  bool quiet = false;                   ///< not a line for each trace
};

/// Parses argv; prints help, version or a usage error itself. Nothing: the program shall end, with `exit_code`.
[[nodiscard]] std::optional<Options> parse_options(int argc, char** argv, int& exit_code);

}  // namespace usdt_broker
