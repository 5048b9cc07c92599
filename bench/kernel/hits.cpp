// SPDX-License-Identifier: BSD-2-Clause
// What a hit costs, by a loop of cheap system calls that run into it.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "measure.hpp"
#include "ours.hpp"
#include "parts.hpp"
#include "sys/unique_fd.hpp"
#include "table.hpp"
#include "usdt/features.hpp"

namespace usdt::bench {
namespace {

/// A system call on /dev/null, and the function it runs through.
struct Loop {
  const char* what;
  const char* function;
  std::uint64_t second;  ///< arguments of the function, 0: an address
  std::uint64_t third;
};
constexpr std::uint64_t kOffset = 40;
constexpr std::array kLoops = {Loop{"lseek()", "vfs_llseek", kOffset, SEEK_CUR},
                               Loop{"write() of 1 byte", "vfs_write", 0, 1},
                               Loop{"write() of 512 bytes", "vfs_write", 0, 512}};

std::array<char, 512> block;

void fire(const Loop& loop, int fd, std::uint64_t calls) {
  for (std::uint64_t i = 0; i < calls; ++i) {
    if (loop.second == kOffset) {
      ::lseek(fd, kOffset, SEEK_CUR);
    } else if (::write(fd, block.data(), loop.third) < 0) {
      return;
    }
  }
}

struct Kind {
  Attaching attaching;
  unsigned hits = 1;   ///< of a call
  unsigned reads = 3;  ///< arguments there are: 3, of tracepoints 2, of kretprobes the return value
};
constexpr std::array kKinds = {Kind{{"kprobe (perf)", "kprobe", Backend::perf_kprobe}},
                               Kind{{"kretprobe (perf)", "kretprobe", Backend::perf_kprobe}, 1, 1},
                               Kind{{"kprobe_multi", "kprobe", Backend::kprobe_multi}},
                               Kind{{"kretprobe_multi", "kretprobe", Backend::kprobe_multi}, 1, 1},
                               Kind{{"kprobe_session", "ksession", Backend::kprobe_session}, 2},
                               Kind{{"fentry", "fentry", Backend::tracing}},
                               Kind{{"fexit", "fexit", Backend::tracing}},
                               Kind{{"fsession", "fsession", Backend::tracing}, 2},
                               Kind{{"fentry_multi", "fentry", Backend::tracing_multi}},
                               Kind{{"fexit_multi", "fexit", Backend::tracing_multi}},
                               Kind{{"fsession_multi", "fsession", Backend::tracing_multi}, 2},
                               Kind{{"raw_tp sys_enter", "raw_tp", Backend::automatic}, 1, 2},
                               Kind{{"tp_btf sys_enter", "tp_btf", Backend::automatic}, 1, 2}};
constexpr std::size_t kFentryMulti = 8;
constexpr std::size_t kKprobeMulti = 2;

/// One program in the race; without a program: nothing attached.
struct Runner {
  std::string name;
  const Kind* kind = nullptr;
  std::uint32_t reads = 0;
  std::unique_ptr<OurProgram> program = nullptr;
  std::string refusal = {};
};

class Race {
 public:
  Race(const Loop& loop, const KernelSettings& settings) : loop_(loop), settings_(settings) {}

  Result<void> prepare() {
    file_.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    if (!file_) return fail(os_failure(ErrorKind::io, "/dev/null", errno));
    std::vector<PointPattern> patterns;
    for (const char* prefix : {"kprobe", "kretprobe", "ksession", "fentry", "fexit", "fsession"})
      patterns.push_back(KernelPattern::parse(fmt::format("{}:vmlinux:{}", prefix, loop_.function)).value());
    for (const char* prefix : {"raw_tp", "tp_btf"})
      patterns.push_back(KernelPattern::parse(fmt::format("{}:sys_enter", prefix)).value());
    auto selection = select(patterns);
    if (!selection) return fail(selection.error());
    selection_ = std::move(selection->kernel);
    abilities_ = kernel_abilities();
    runners_.push_back({"nothing attached"});
    return {};
  }

  /// Where a program cannot be had on this kernel, its figures are not numbers. Returns the runner's index.
  std::size_t add(std::string name, const Kind& kind, const OurProgram::Spec& spec) {
    Runner runner{std::move(name), &kind, spec.by_hand && spec.program != "bench_count" ? 3 : spec.reads};
    auto plan = plan_for(only_of(selection_, kind.attaching.prefix), kind.attaching, abilities_);
    auto program = plan ? OurProgram::load(std::move(*plan), spec) : fail(plan.error());
    if (program) {
      runner.program = std::make_unique<OurProgram>(std::move(*program));
    } else {
      runner.refusal = program.error().message;
      fmt::print(stderr, "bench_kernel: {}: {}\n", runner.name, runner.refusal);
    }
    runners_.push_back(std::move(runner));
    return runners_.size() - 1;
  }

  Result<void> run() {
    std::vector<Candidate> candidates;
    for (Runner& runner : runners_) candidates.emplace_back([this, &runner] { return turn(runner); });
    auto measured = measure(settings_.rounds, candidates);
    if (!measured) return fail(measured.error());
    ns_ = std::move(*measured);
    return {};
  }

  [[nodiscard]] bool has(std::size_t i) const { return runners_[i].refusal.empty(); }
  [[nodiscard]] const Runner& runner(std::size_t i) const { return runners_[i]; }
  /// ns of a call.
  [[nodiscard]] const Series& call(std::size_t i) const { return ns_[i]; }
  /// What the program added to a call.
  [[nodiscard]] Series added(std::size_t i) const { return difference(ns_[i], ns_[0]); }
  [[nodiscard]] Series of_base(std::size_t i) const { return ratio(ns_[i], ns_[0]); }

 private:
  Result<double> turn(Runner& runner) {
    if (!runner.refusal.empty()) return std::numeric_limits<double>::quiet_NaN();
    if (!runner.program) return quickest();
    if (auto attached = runner.program->attach(); !attached) return fail(attached.error().within(runner.name));
    const std::array before = counters(runner);
    const double ns = quickest();
    const std::array after = counters(runner);
    runner.program->detach();
    if (auto right = check(runner, after[0] - before[0], after[1] - before[1], after[2] - before[2]); !right)
      return fail(right.error());
    return ns;
  }

  static std::array<std::uint64_t, 3> counters(Runner& runner) {
    return {runner.program->global("bench_hits"), runner.program->global("bench_sum"),
            runner.program->global("bench_unread")};
  }

  /// ns of a call in the quickest of many short loops: the machine is shared.
  double quickest() {
    fire(loop_, file_.get(), settings_.calls / 10 + 1);
    double best = std::numeric_limits<double>::infinity();
    for (unsigned i = 0; i < kTries; ++i) {
      Stopwatch watch;
      fire(loop_, file_.get(), settings_.calls);
      best = std::min(best, watch.lap_ns() / static_cast<double>(settings_.calls));
    }
    return best;
  }

  /// Every hit was seen, and every value was the right one.
  Result<void> check(const Runner& runner, std::uint64_t hits, std::uint64_t sum, std::uint64_t unread) const {
    const std::uint64_t calls = kTries * settings_.calls + settings_.calls / 10 + 1;
    const std::uint64_t expected = calls * runner.kind->hits;
    const bool tracepoint = runner.kind->reads == 2;  // other system calls hit it, too
    if (hits < expected || (!tracepoint && hits != expected))
      return fail(ErrorKind::io, fmt::format("{}: {} hits instead of {}", runner.name, hits, expected));
    if (runner.reads == 0 || tracepoint) return {};
    // Registers hold arguments at the entry only.
    const bool half = runner.kind->attaching.backend == Backend::kprobe_session;
    const std::uint64_t read = half ? calls : expected;
    if (unread != expected - read)
      return fail(ErrorKind::io, fmt::format("{}: {} hits could not be read", runner.name, unread));
    if (runner.kind->reads == 1) {
      const std::uint64_t result = loop_.second == kOffset ? sum / read : loop_.third;
      if (sum != result * read) return fail(ErrorKind::io, fmt::format("{}: wrong results", runner.name));
      return {};
    }
    const std::uint64_t second = loop_.second != 0 ? loop_.second : reinterpret_cast<std::uintptr_t>(block.data());
    // The address of the file, `read` times, modulo 2^64: the same in all programs.
    const std::uint64_t files = sum - (second + loop_.third) * read;
    if (files_ == 0) {
      files_ = files;
      files_read_ = read;
    }
    if (files == 0 || files * files_read_ != files_ * read)
      return fail(ErrorKind::io, fmt::format("{}: wrong arguments", runner.name));
    return {};
  }

  static constexpr unsigned kTries = 60;
  const Loop& loop_;
  const KernelSettings& settings_;
  sys::UniqueFd file_;
  KernelSelection selection_;
  KernelAbilities abilities_;
  std::vector<Runner> runners_;
  std::vector<Series> ns_;
  mutable std::uint64_t files_ = 0;
  mutable std::uint64_t files_read_ = 0;
};

std::string number(const Series& series, int decimals) {
  const Spread found = spread(series);
  return std::isnan(found.median) ? "–" : fmt::format("{:.{}f}", found.median, decimals);
}

std::string with_range(const Series& series) {
  const Spread found = spread(series);
  return std::isnan(found.median) ? "–" : text(found);
}

/// A program that only counts, and one that reads what there is, for each kind.
Result<void> kinds_of(const Loop& loop, const KernelSettings& settings) {
  Race race(loop, settings);
  if (auto ready = race.prepare(); !ready) return ready;
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (const Kind& kind : kKinds) {
    const std::size_t empty = race.add(kind.attaching.name, kind, {});
    pairs.emplace_back(empty, race.add(fmt::format("{}, reading", kind.attaching.name), kind, {.reads = kind.reads}));
  }
  if (auto done = race.run(); !done) return done;
  fmt::print("\n{} through {}: {} ns with nothing attached.\n\n", loop.what, loop.function, number(race.call(0), 0));
  Table table({"", "hits a call", "empty: added ns", "of the call", "arguments", "reading: added ns", "of the call",
               "reading of empty"});
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    const auto [empty, reading] = pairs[i];
    if (!race.has(empty)) {
      table.add({kKinds[i].attaching.name, "", "not on this kernel"});
      continue;
    }
    table.add({kKinds[i].attaching.name, fmt::format("{}", kKinds[i].hits), number(race.added(empty), 0),
               with_range(race.of_base(empty)), kKinds[i].reads == 1 ? "result" : fmt::format("{}", kKinds[i].reads),
               number(race.added(reading), 0), with_range(race.of_base(reading)),
               with_range(ratio(race.added(reading), race.added(empty)))});
  }
  table.print();
  return {};
}

struct Reader {
  const char* name;
  OurProgram::Spec spec;
};

/// Three typed arguments by each carrier, between what is written by hand.
Result<void> carriers_of(const Kind& kind, const Reader& by_hand, const KernelSettings& settings) {
  const std::array readers = {Reader{"by hand, counts only", {true, "bench_count"}},
                              by_hand,
                              Reader{"ours, counts only, per-link", {.carrier = Carrier::per_link}},
                              Reader{"ours, counts only, cookie", {.carrier = Carrier::cookie}},
                              Reader{"ours, counts only, table", {.carrier = Carrier::table}},
                              Reader{"ours, three arguments, per-link", {.reads = 3, .carrier = Carrier::per_link}},
                              Reader{"ours, three arguments, cookie", {.reads = 3, .carrier = Carrier::cookie}},
                              Reader{"ours, three arguments, table", {.reads = 3, .carrier = Carrier::table}}};
  Race race(kLoops[0], settings);
  if (auto ready = race.prepare(); !ready) return ready;
  for (const Reader& reader : readers) race.add(reader.name, kind, reader.spec);
  if (!race.has(1)) {
    fmt::print("\n{}: not on this kernel.\n", kind.attaching.name);
    return {};
  }
  if (auto done = race.run(); !done) return done;
  fmt::print("\n{} of {}: {} ns a call with nothing attached.\n\n", kind.attaching.name, kLoops[0].function,
             number(race.call(0), 0));
  Table table({kind.attaching.name, "ns a call", "added ns", "added, of the bare hit", "whole call, of the bare hit's",
               "added, of by hand"});
  for (std::size_t i = 0; i < readers.size(); ++i) {
    const std::size_t at = i + 1;
    table.add({readers[i].name, number(race.call(at), 0), number(race.added(at), 0),
               with_range(ratio(race.added(at), race.added(1))), with_range(ratio(race.call(at), race.call(1))),
               readers[i].spec.reads == 3 ? with_range(ratio(race.added(at), race.added(2))) : ""});
  }
  table.print();
  fmt::print("\nWanted: three typed arguments for at most 1.25 of the bare hit (by hand, counts only).\n\n");
  for (std::size_t i = 5; i < readers.size(); ++i) {
    const Spread times = spread(ratio(race.added(i + 1), race.added(1)));
    fmt::print("- {}: {}, {}\n", readers[i].name, text(times), times.median <= 1.25 ? "met" : "NOT MET");
  }
  return {};
}

}  // namespace

Result<void> measure_hits(const KernelSettings& settings) {
  fmt::print(
      "\n### What a hit costs\n\nMedians (lowest..highest) of {} rounds; each takes the quickest of 60 loops of "
      "{} calls.\n",
      settings.rounds, settings.calls);
  if (auto done =
          carriers_of(kKinds[kFentryMulti], {"by hand, bpf_get_func_arg() x 3", {true, "bench_slots", 3}}, settings);
      !done)
    return done;
  if (auto done =
          carriers_of(kKinds[kKprobeMulti], {"by hand, three registers", {true, "bench_registers", 2}}, settings);
      !done)
    return done;
  for (const Loop& loop : kLoops) {
    if (auto done = kinds_of(loop, settings); !done) return done;
  }
  return {};
}

}  // namespace usdt::bench
