// SPDX-License-Identifier: BSD-2-Clause
#include <cerrno>

#include "common/report.hpp"
#include "exit_code.hpp"
#include "print.hpp"

namespace usdt_list {

int output_failed(const usdt::io::Stream& out) {
  if (out.error() != EPIPE) {
    usdt::tools::print_error(kTool, usdt::os_failure(usdt::ErrorKind::io, "write to standard output", out.error()));
  }
  return kTrouble;
}

}  // namespace usdt_list
