// SPDX-License-Identifier: BSD-2-Clause
// Run time of programs that read arguments, by the kernel's own statistics: less that of an empty program, by argument.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "hit_direct.bpf.hpp"
#include "hit_libbpf.bpf.hpp"
#include "hit_usdt.bpf.hpp"
#include "kernel.hpp"
#include "parts.hpp"
#include "programs.hpp"

extern "C" {
void reg1(std::uint64_t hits);
void reg3(std::uint64_t hits);
void reg6(std::uint64_t hits);
void reg12(std::uint64_t hits);
void mem1(std::uint64_t hits);
void mem3(std::uint64_t hits);
void mem6(std::uint64_t hits);
void mem12(std::uint64_t hits);
void mixed12(std::uint64_t hits);
}

namespace usdt::bench {
namespace {

struct Case {
  const char* what;
  const char* probe;
  std::uint32_t args;
  std::uint32_t times;  ///< the program reads them so many times at each hit, to show what is the argument's alone
  void (*fire)(std::uint64_t hits);
  const char* by_hand;  ///< program of hit_direct.bpf.c

  [[nodiscard]] Reading reading() const { return {probe, args, times}; }
  [[nodiscard]] std::string program(std::string_view name) const { return fmt::format("{}_{}", name, args); }
  [[nodiscard]] std::uint32_t reads() const { return args * times; }
  /// The arguments are 1, 2, 3 ...
  [[nodiscard]] std::uint64_t sum_per_hit() const { return std::uint64_t{times} * args * (args + 1) / 2; }
};

constexpr std::array kCases = {
    Case{"1 register argument", "reg1", 1, 1, reg1, "hit_registers"},
    Case{"3 register arguments", "reg3", 3, 1, reg3, "hit_registers"},
    Case{"6 register arguments", "reg6", 6, 1, reg6, "hit_registers"},
    Case{"12 register arguments", "reg12", 12, 1, reg12, "hit_registers"},
    Case{"6 register arguments, each read 16 times a hit", "reg6", 6, 16, reg6, "hit_registers"},
    Case{"1 memory argument", "mem1", 1, 1, mem1, "hit_memory"},
    Case{"3 memory arguments", "mem3", 3, 1, mem3, "hit_memory"},
    Case{"6 memory arguments", "mem6", 6, 1, mem6, "hit_memory"},
    Case{"12 memory arguments", "mem12", 12, 1, mem12, "hit_memory"},
    Case{"12 mixed arguments, five on one base", "mixed12", 12, 1, mixed12, "hit_mixed"},
};

/// One way to read a case's arguments.
struct Way {
  std::string name;
  std::unique_ptr<Program> program;  ///< none: it cannot do this case
  std::size_t empty;                 ///< index of the empty program that is attached in the same way
  std::string why_not = {};
};
// In the order of make_ways().
enum : std::size_t { kEmpty, kLibbpfEmpty, kByHand, kPerLink, kCookie, kTable, kIpHash, kLibbpf, kWays };

Result<void> add(std::vector<Way>& ways, std::string name, std::size_t empty, Result<std::unique_ptr<Program>> loaded) {
  if (loaded) {
    ways.push_back({std::move(name), std::move(*loaded), empty});
  } else if (loaded.error().kind == ErrorKind::limit) {
    ways.push_back({std::move(name), nullptr, empty, "does not fit"});
  } else {
    return fail(loaded.error().within(name));
  }
  return {};
}

Result<std::vector<Way>> make_ways(const Case& c) {
  const Reading reading = c.reading();
  std::vector<Way> ways;
  const auto direct = [&](std::string program) {
    return SdkProgram::load(hit_direct_object(), std::move(program), reading, Carrier::table);
  };
  const auto carried = [&](Carrier carrier) {
    return add(ways, std::string(to_string(carrier)), kEmpty,
               SdkProgram::load(hit_usdt_object(), c.program("hit_read"), reading, carrier));
  };
  auto done = add(ways, "empty program", kEmpty, direct("hit_empty"));
  if (done)
    done = add(ways, "empty, by libbpf", kLibbpfEmpty, LibbpfProgram::load(hit_libbpf_object(), "hit_empty", reading));
  if (done) done = add(ways, "hand-written", kEmpty, direct(c.program(c.by_hand)));
  for (const Carrier carrier : {Carrier::per_link, Carrier::cookie, Carrier::table, Carrier::ip_hash})
    if (done) done = carried(carrier);
  if (done)
    done = add(ways, "libbpf", kLibbpfEmpty, LibbpfProgram::load(hit_libbpf_object(), c.program("hit_read"), reading));
  if (!done) return fail(done.error());
  return ways;
}

/// Nanoseconds of one run; an error if the program missed a hit or read a wrong value.
Result<double> run_time(const Case& c, Program& program, std::uint64_t expected_sum, std::uint64_t hits) {
  if (auto attached = program.attach(); !attached) return fail(attached.error());
  c.fire(hits / 20 + 1);
  const auto before = run_stats(program.fd());
  const std::uint64_t sum = program.sum();
  c.fire(hits);
  const auto after = run_stats(program.fd());
  const std::uint64_t read = program.sum() - sum;
  program.detach();
  if (!before || !after) return fail(!before ? before.error() : after.error());
  if (after->count - before->count != hits || read != expected_sum * hits)
    return fail(ErrorKind::io, fmt::format("{} of {} hits, sum {} instead of {}", after->count - before->count, hits,
                                           read, expected_sum * hits));
  return static_cast<double>(after->ns - before->ns) / static_cast<double>(hits);
}

/// Of one case: what each way costs, less its empty program.
struct Costs {
  std::vector<Series> run;  ///< ns, by way
  std::vector<Series> arg;  ///< ns for each argument

  [[nodiscard]] Series ratio_to_libbpf(std::size_t way) const { return ratio(arg[way], arg[kLibbpf]); }
  /// Of medians: what hand-written loads cost is near nothing, and below it in some rounds. NaN: not to be told from 0.
  [[nodiscard]] double times_by_hand(std::size_t way) const {
    constexpr double kTold = 0.1;
    const double by_hand = spread(arg[kByHand]).median;
    return by_hand < kTold ? std::numeric_limits<double>::quiet_NaN() : spread(arg[way]).median / by_hand;
  }
};

Result<Costs> measure_case(const Case& c, std::vector<Way>& ways, const Settings& settings) {
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < ways.size(); ++i)
    candidates.emplace_back([&c, &way = ways[i], &settings, i]() -> Result<double> {
      if (!way.program) return std::numeric_limits<double>::quiet_NaN();
      const bool reads = i != kEmpty && i != kLibbpfEmpty;
      auto ns = run_time(c, *way.program, reads ? c.sum_per_hit() : 0, settings.hits);
      if (!ns) return fail(ns.error().within(fmt::format("{}, {}", c.what, way.name)));
      return ns;
    });
  auto run = measure(settings.rounds, candidates);
  if (!run) return fail(run.error());
  Costs costs{std::move(*run), {}};
  for (std::size_t i = 0; i < ways.size(); ++i)
    costs.arg.push_back(scaled(difference(costs.run[i], costs.run[ways[i].empty]), 1.0 / c.reads()));
  return costs;
}

void print_case(const Case& c, const std::vector<Way>& ways, const Costs& costs) {
  fmt::print("\n  {:<48} {:>8} {:>22} {:>24} {:>16}\n", c.what, "ns a run", "ns an argument", "of libbpf's",
             "of hand-written");
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const double times = costs.times_by_hand(i);
    if (!ways[i].program) {
      fmt::print("    {:<46} {:>8}\n", ways[i].name, ways[i].why_not);
    } else if (i == ways[i].empty) {
      fmt::print("    {:<46} {:>8.1f}\n", ways[i].name, spread(costs.run[i]).median);
    } else {
      fmt::print("    {:<46} {:>8.1f} {:>22} {:>24} {:>16}\n", ways[i].name, spread(costs.run[i]).median,
                 text(spread(costs.arg[i]), 1), text(spread(costs.ratio_to_libbpf(i)), 3),
                 std::isnan(times) ? "-" : fmt::format("{:.1f}", times));
    }
  }
}

void print_verdicts(const std::vector<Costs>& costs) {
  constexpr std::size_t kSixRegisters = 2, kSixRegisters16 = 4, kMixed = 9;
  const auto against_libbpf = [&](std::size_t which, const char* name, std::size_t way, double limit) {
    print_verdict(fmt::format("{}, {}", kCases[which].what, name), spread(costs[which].ratio_to_libbpf(way)), limit,
                  "of libbpf's");
  };
  fmt::print("\n  Targets\n");
  against_libbpf(kSixRegisters, "per-link", kPerLink, 1.0 / 8);
  against_libbpf(kSixRegisters, "cookie", kCookie, 1.0 / 4);
  against_libbpf(kSixRegisters, "table", kTable, 1.0 / 2);
  against_libbpf(kSixRegisters16, "cookie", kCookie, 1.0 / 4);
  against_libbpf(kMixed, "per-link", kPerLink, 1.0 / 3);
  against_libbpf(kMixed, "table", kTable, 1.0 / 2);
  // Of arguments read 16 times only: what a hand-written program needs to read six once is less than the noise.
  const double times = costs[kSixRegisters16].times_by_hand(kPerLink);
  if (!std::isnan(times))
    print_verdict(fmt::format("{}, per-link", kCases[kSixRegisters16].what), {times, times, times}, 2,
                  "of hand-written");
}

}  // namespace

Result<void> measure_arguments(const Settings& settings) {
  auto stats = enable_stats();
  if (!stats) return fail(stats.error());
  fmt::print(
      "\nReading arguments in the BPF program, by the kernel's statistics: median (lowest..highest) of {} rounds\n",
      settings.rounds);
  std::vector<Costs> all;
  for (const Case& c : kCases) {
    auto ways = make_ways(c);
    if (!ways) return fail(ways.error().within(c.what));
    auto costs = measure_case(c, *ways, settings);
    if (!costs) return fail(costs.error());
    print_case(c, *ways, *costs);
    std::fflush(stdout);
    all.push_back(std::move(*costs));
  }
  print_verdicts(all);
  return {};
}

}  // namespace usdt::bench
