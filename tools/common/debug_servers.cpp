// SPDX-License-Identifier: BSD-2-Clause
#include "common/debug_servers.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace usdt::tools {
namespace {

/// The directory out of which a login shell has the servers' names (elfutils' profile.d/debuginfod.sh), which sudo
/// takes away.
constexpr const char* kServerLists = "/etc/debuginfod";

std::string configured_servers() {
  std::string names;
  std::error_code error;
  for (const auto& each : std::filesystem::directory_iterator(kServerLists, error)) {
    if (each.path().extension() != ".urls") continue;
    std::ifstream list(each.path());
    for (std::string name; list >> name;) names += (names.empty() ? "" : " ") + name;
  }
  return names;
}

}  // namespace

Result<void> name_debug_servers() {
  // Seconds and bytes of one file: a server that never ends would stop a trace.
  ::setenv("DEBUGINFOD_MAXTIME", "300", 0);
  ::setenv("DEBUGINFOD_MAXSIZE", "8589934592", 0);
  const char* const named = std::getenv("DEBUGINFOD_URLS");
  if (named != nullptr && *named != '\0') return {};
  const std::string servers = configured_servers();
  if (servers.empty())
    return fail(ErrorKind::invalid_argument,
                "--debuginfod: no server is known: set DEBUGINFOD_URLS, on Debian to https://debuginfod.debian.net, "
                "and see that sudo keeps it");
  ::setenv("DEBUGINFOD_URLS", servers.c_str(), 1);  // before there are other threads
  return {};
}

}  // namespace usdt::tools
