// SPDX-License-Identifier: BSD-2-Clause
// bench_hit: what a hit and an attachment cost, side by side with libbpf, the bare system call and hand-written
// programs.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <string>

#include "parts.hpp"

namespace {

struct Part {
  const char* name;
  usdt::Result<void> (*run)(const usdt::bench::Settings&);
};
constexpr std::array kParts = {Part{"arguments", usdt::bench::measure_arguments},
                               Part{"attach", usdt::bench::measure_attach}, Part{"forms", usdt::bench::measure_forms}};

int run_parts(const std::string& only, const usdt::bench::Settings& settings) {
  for (const Part& part : kParts) {
    if (!only.empty() && only != part.name) continue;
    std::fflush(stdout);
    if (auto done = part.run(settings); !done) {
      fmt::print(stderr, "bench_hit: {}: {}\n", part.name, done.error().message);
      return 1;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  usdt::bench::Settings settings;
  std::string only;
  CLI::App app("What a hit and an attachment cost: paired rounds, medians (lowest..highest). Needs root.", "bench_hit");
  app.add_option("--rounds", settings.rounds, "Rounds; each measures every candidate once")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--hits", settings.hits, "Hits of each candidate in a round")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--only", only, "One part")->check(CLI::IsMember({"arguments", "attach", "forms"}));
  CLI11_PARSE(app, argc, argv);
  if (::geteuid() != 0) {
    fmt::print(stderr, "bench_hit: needs root (attaching uprobes)\n");
    return 1;
  }
  return run_parts(only, settings);
}
