// SPDX-License-Identifier: BSD-2-Clause
// Time to plan 10,000 sites, and to find a register by name. Sites are made here; the file behind them is this
// benchmark itself, whose symbols answer for operands such as `plan_bench_counter(%rip)`.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <array>

#include "arch/arch.hpp"
#include "usdt/decode.hpp"
#include "usdt/plan.hpp"

extern "C" {
extern int plan_bench_counter;
int plan_bench_counter = 1;
}

namespace usdt {
namespace {

constexpr int kSites = 10000;

/// Operands like those of real programs; `variant` makes them distinct.
std::string args_text(int variant) { return fmt::format("8@%rdi -4@{}(%rbp) 4@%eax 1@(%rax,%rcx,2)", -8 * variant); }

ProbeFile file_with(int distinct_texts, bool symbolic) {
  ProbeFile file;
  auto self = ElfFile::open("/proc/self/exe");
  if (!self) return file;
  file.elf = std::make_shared<const ElfFile>(std::move(*self));
  for (int i = 0; i < kSites; ++i) {
    Site site;
    site.provider = "app";
    site.name = fmt::format("probe_{}", i);
    site.args_text = args_text(i % distinct_texts);
    if (symbolic) site.args_text += " -4@plan_bench_counter(%rip)";
    site.pc = site.pc_adjusted = VirtAddr(0x400000 + 16 * static_cast<std::uint64_t>(i));
    site.offset = FileOffset(0x1000 + 16 * static_cast<std::uint64_t>(i));
    site.site_class = SiteClass::nop;
    file.sites.push_back(std::move(site));
  }
  return file;
}

/// 10,000 sites with range(0) distinct argument texts; range(1): one argument is a symbol.
void BM_Plan10000Sites(benchmark::State& state) {
  const Selection selection{.files = {file_with(static_cast<int>(state.range(0)), state.range(1) != 0)}};
  for (auto _ : state) {
    auto plan = plan_attach(selection, KernelFacts{});
    if (!plan) return state.SkipWithError(plan.error().message.c_str());
    benchmark::DoNotOptimize(plan);
  }
  state.SetItemsProcessed(state.iterations() * kSites);
}
BENCHMARK(BM_Plan10000Sites)
    ->ArgNames({"texts", "symbolic"})
    ->Args({100, 0})
    ->Args({kSites, 0})
    ->Args({100, 1})
    ->Unit(benchmark::kMillisecond);

void BM_FindRegister(benchmark::State& state) {
  constexpr std::array<std::string_view, 8> kNames = {"rdi", "eax", "r10d", "ah", "rip", "xmm15", "bpl", "nope"};
  const arch::Arch& arch = arch::for_machine(Machine::x86_64);
  std::size_t next = 0;
  for (auto _ : state) benchmark::DoNotOptimize(arch.find(kNames[next++ % kNames.size()]));
}
BENCHMARK(BM_FindRegister);

void BM_DecodeFourArguments(benchmark::State& state) {
  const ArgDecoder decoder(Machine::x86_64);
  const std::string text = args_text(3);
  for (auto _ : state) benchmark::DoNotOptimize(decoder.decode(text));
}
BENCHMARK(BM_DecodeFourArguments);

}  // namespace
}  // namespace usdt

BENCHMARK_MAIN();
