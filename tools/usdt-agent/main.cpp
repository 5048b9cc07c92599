// SPDX-License-Identifier: BSD-2-Clause
#include "agent.hpp"
#include "common/guarded.hpp"
#include "io/stream.hpp"
#include "memory.hpp"

namespace {

int run_tool(int argc, char** argv) {
  usdt::io::reserve_standard_streams();
  usdt_agent::keep_memory_small();
  int exit_code = 0;
  const auto options = usdt_agent::parse_options(argc, argv, exit_code);
  if (!options) return exit_code;
  return options->only_check ? usdt_agent::check(*options) : usdt_agent::run(*options);
}

}  // namespace

constinit const usdt::tools::Tool usdt::tools::kThisTool{.name = usdt_agent::kTool,
                                                         .trouble = usdt_agent::kRunTimeFailure};

int main(int argc, char** argv) {
  return usdt::tools::guarded([&] { return run_tool(argc, argv); });
}
