// SPDX-License-Identifier: BSD-2-Clause
// bench_kernel: what a hit of a kernel function and attaching to many of them cost, side by side with hand-written
// programs and the bare system calls.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <string>

#include "parts.hpp"

namespace {

struct Part {
  const char* name;
  usdt::Result<void> (*run)(const usdt::bench::KernelSettings&);
};
constexpr std::array kParts = {Part{"hits", usdt::bench::measure_hits}, Part{"attach", usdt::bench::measure_attach}};

}  // namespace

int main(int argc, char** argv) {
  usdt::bench::KernelSettings settings;
  std::string only;
  CLI::App app("What kernel functions cost: tables in Markdown. Needs root.", "bench_kernel");
  app.add_option("--rounds", settings.rounds, "Rounds of hits")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--calls", settings.calls, "System calls in each loop")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--attach-rounds", settings.attach_rounds, "Rounds of attaching")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--sizes", settings.sizes, "Numbers of functions to attach to; 0: all")->delimiter(',');
  app.add_option("--one-each", settings.one_each, "Largest number to attach with a link for each function")
      ->capture_default_str();
  app.add_option("--once", settings.once, "From so many functions on, one round only")->capture_default_str();
  app.add_option("--only", only, "One part")->check(CLI::IsMember({"hits", "attach"}));
  CLI11_PARSE(app, argc, argv);
  if (::geteuid() != 0) {
    fmt::print(stderr, "bench_kernel: needs root\n");
    return 1;
  }
  for (const Part& part : kParts) {
    if (!only.empty() && only != part.name) continue;
    // In a process of its own: what one part learns of the kernel would make the next one quicker.
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      const auto done = part.run(settings);
      if (!done) fmt::print(stderr, "bench_kernel: {}: {}\n", part.name, done.error().message);
      std::fflush(nullptr);
      ::_exit(done ? 0 : 1);
    }
    int status = 1;
    if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0) return 1;
  }
  return 0;
}
