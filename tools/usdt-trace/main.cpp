// SPDX-License-Identifier: BSD-2-Clause
#include "common/stream.hpp"
#include "explain.hpp"
#include "flags.hpp"
#include "replay.hpp"
#include "session.hpp"

int main(int argc, char** argv) {
  usdt::tools::reserve_standard_streams();
  int exit_code = 0;
  const auto flags = usdt_trace::parse_flags(argc, argv, exit_code);
  if (!flags) return exit_code;
  if (flags->explain) return usdt_trace::explain(*flags);
  return flags->replay.empty() ? usdt_trace::run(*flags) : usdt_trace::replay(*flags);
}
