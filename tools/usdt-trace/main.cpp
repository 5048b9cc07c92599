// SPDX-License-Identifier: BSD-2-Clause
#include "common/stream.hpp"
#include "explain.hpp"
#include "flags.hpp"
#include "replay.hpp"
#include "session.hpp"

int main(int argc, char** argv) {
  usdt::tools::reserve_standard_streams();
  int exit_code = 0;
  const auto questions = usdt_trace::parse_flags(argc, argv, exit_code);
  if (!questions) return exit_code;
  if (questions->front().explain) return usdt_trace::explain(*questions);
  return questions->front().replay.empty() ? usdt_trace::run(*questions) : usdt_trace::replay(*questions);
}
