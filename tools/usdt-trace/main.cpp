// SPDX-License-Identifier: BSD-2-Clause
#include "common/guarded.hpp"
#include "explain.hpp"
#include "flags.hpp"
#include "io/stream.hpp"
#include "session.hpp"
#include "signals.hpp"

namespace {

int run_tool(int argc, char** argv) {
  usdt::io::reserve_standard_streams();
  usdt_trace::take_inherited_signals();
  int exit_code = 0;
  const auto questions = usdt_trace::parse_flags(argc, argv, exit_code);
  if (!questions) return exit_code;
  const usdt::FeatureScope features(questions->front().features);
  if (questions->front().explain) return usdt_trace::explain(*questions);
  return usdt_trace::run(*questions);
}

}  // namespace

constinit const usdt::tools::Tool usdt::tools::kThisTool{.name = "usdt-trace", .trouble = 1};

int main(int argc, char** argv) {
  return usdt::tools::guarded([&] { return run_tool(argc, argv); });
}
