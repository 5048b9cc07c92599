// SPDX-License-Identifier: BSD-2-Clause
// Time to parse argument texts: all real ones of the golden files, and typical ones. "Time" is of one text; for the
// whole corpus the counter per_text is its mean.
#include <benchmark/benchmark.h>

#include <fstream>
#include <string>
#include <vector>

#include "parsers/args.hpp"
#include "usdt/pattern.hpp"

namespace {

using usdt::Machine;

std::vector<std::string> real_texts(const std::string& name) {
  std::vector<std::string> texts;
  std::ifstream file(USDT_SOURCE_DIR "/tests/parsers/corpus/" + name + ".txt");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("  ") && !line.starts_with("# ")) texts.push_back(line);
  }
  return texts;
}

void corpus(benchmark::State& state, const std::string& name, Machine machine) {
  const std::vector<std::string> texts = real_texts(name);
  if (texts.empty()) return state.SkipWithError("no golden file to read");
  for (auto _ : state) {
    for (const std::string& text : texts) benchmark::DoNotOptimize(usdt::parsers::parse_args(text, machine));
  }
  using Counter = benchmark::Counter;
  state.counters["per_text"] =
      Counter(static_cast<double>(texts.size()), Counter::kIsIterationInvariantRate | Counter::kInvert);
}

void typical(benchmark::State& state, const std::string& text, Machine machine) {
  for (auto _ : state) benchmark::DoNotOptimize(usdt::parsers::parse_args(text, machine));
}

void hostile_glob(benchmark::State& state) {
  const std::string text(1000, 'a');
  for (auto _ : state) benchmark::DoNotOptimize(usdt::glob_match("*a*a*a*a*a*a*b", text));
}

BENCHMARK_CAPTURE(corpus, x86_64, "x86_64", Machine::x86_64);
BENCHMARK_CAPTURE(corpus, i386, "i386", Machine::i386);
BENCHMARK_CAPTURE(corpus, aarch64, "aarch64", Machine::aarch64);
BENCHMARK_CAPTURE(typical, x86_64_4_args, "8@%rdi -4@-20(%rbp) 4@$5 8@%rax", Machine::x86_64);
BENCHMARK_CAPTURE(typical, x86_64_4_memory_args,
                  "-4@40+CheckpointStats(%rip) 8@(%rax,%rcx,8) 8@16(%rsp) -4@NBuffers(%rip)", Machine::x86_64);
BENCHMARK_CAPTURE(typical, aarch64_4_args, "8@x0 -4@[sp, 60] 4@5 8@x21", Machine::aarch64);
BENCHMARK_CAPTURE(typical, x86_64_unreadable, "8@(%rax,%rcx,3)", Machine::x86_64);
BENCHMARK(hostile_glob);

}  // namespace

BENCHMARK_MAIN();
