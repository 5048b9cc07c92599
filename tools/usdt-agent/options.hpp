// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flags.hpp"

namespace usdt_agent {

inline constexpr const char* kTool = "usdt-agent";
inline constexpr int kSuccess = 0, kRunTimeFailure = 1, kUsageError = 2;

/// The command line.
struct Options {
  bool only_check = false;                           ///< usdt-agent check
  std::vector<std::string> places;                   ///< files with questions, and directories of such files
  std::string listen;                                ///< empty: no page is served
  std::vector<usdt_trace::ExportPart> exports = {};  ///< of all questions that can be written so
  std::string spool = {};                            ///< a directory; empty: batches wait in memory
  std::uint64_t spool_bytes = 0;                     ///< of each destination
  bool verbose = false;
};

/// Parses argv; prints help, version or a usage error itself. Nothing when the program shall end, with the exit code in
/// `exit_code`.
[[nodiscard]] std::optional<Options> parse_options(int argc, char** argv, int& exit_code);

}  // namespace usdt_agent
