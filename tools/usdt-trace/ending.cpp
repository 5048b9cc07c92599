// SPDX-License-Identifier: BSD-2-Clause
#include "ending.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>

#include "common/report.hpp"

namespace usdt_trace {
namespace {

/// Writes the verifier's log to `file`; says where it is, or how to get it.
std::string keep_verifier_log(const std::string& log, const std::string& file) {
  const auto lines = usdt::tools::counted(static_cast<std::size_t>(std::count(log.begin(), log.end(), '\n')), "line");
  if (file.empty()) return fmt::format("--verifier-log FILE writes the verifier's whole log ({}) to FILE", lines);
  std::ofstream out(file);
  if (out << log << std::flush) return fmt::format("the verifier's whole log ({}) is in {}", lines, file);
  return usdt::os_failure(usdt::ErrorKind::io, fmt::format("write the verifier's log to {}", file), errno).message;
}

}  // namespace

int complain(const usdt::Error& error, const Flags& flags) {
  usdt::tools::print_error("usdt-trace", error);
  if (!error.log.empty()) usdt::tools::print_notice(keep_verifier_log(error.log, flags.verifier_log));
  const bool their_input = error.kind == usdt::ErrorKind::syntax || error.kind == usdt::ErrorKind::invalid_argument;
  return their_input ? usage : run_time_failure;
}

}  // namespace usdt_trace
