// SPDX-License-Identifier: BSD-2-Clause
// plan_file VARIANT FILE...: runs each file through scan, plan and carriers, and prints how far it came. What a test of
// hostile files watches from outside: time, memory, exit code.
#include <cstdio>
#include <cstdlib>

#include "whole_pipeline.hpp"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const auto variant = static_cast<std::uint32_t>(std::strtoul(argv[1], nullptr, 0));
  for (int i = 2; i < argc; ++i) {
    const usdt::test::PipelineRun run = usdt::test::run_pipeline(argv[i], variant);
    std::printf("%zu sites, %zu planned: %.200s\n", run.sites, run.planned, run.error.c_str());
  }
  return 0;
}
