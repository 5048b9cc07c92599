// SPDX-License-Identifier: BSD-2-Clause
// The command line -> which files to scan, and for which probes.
#pragma once

#include <string>
#include <vector>

#include "common/progress.hpp"
#include "flags.hpp"
#include "usdt/usdt.hpp"

namespace usdt_list {

/// One file to scan.
struct Request {
  usdt::TargetFile file;
  std::vector<usdt::ProbePattern> patterns;  ///< empty: every probe
  bool named = true;  ///< by the user; false for what a walk or a glob came across, whose errors are only counted
};

struct Requests {
  std::vector<Request> files;        ///< each inode once
  std::vector<usdt::Error> errors;   ///< targets and processes that could not be read at all
  std::vector<std::string> nowhere;  ///< targets that mean no file, for the message when nothing matched
};

[[nodiscard]] Requests find_requests(const Flags& flags, usdt::tools::Progress& progress);

}  // namespace usdt_list
