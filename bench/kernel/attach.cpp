// SPDX-License-Identifier: BSD-2-Clause
// Attaching to many functions: the library from a pattern to the last link, each time in a fresh process, side by side
// with the bare system calls for the same functions.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bare.hpp"
#include "measure.hpp"
#include "ours.hpp"
#include "parts.hpp"
#include "table.hpp"
#include "usdt/features.hpp"

namespace usdt::bench {
namespace {

constexpr std::array kMany = {Attaching{"kprobe_multi", "kprobe", Backend::kprobe_multi},
                              Attaching{"kprobe_session", "ksession", Backend::kprobe_session},
                              Attaching{"fentry_multi", "fentry", Backend::tracing_multi},
                              Attaching{"fexit_multi", "fexit", Backend::tracing_multi},
                              Attaching{"fsession_multi", "fsession", Backend::tracing_multi}};
constexpr std::array kOneEach = {Attaching{"fentry, one link each", "fentry", Backend::tracing, true},
                                 Attaching{"kprobe, one link each", "kprobe", Backend::perf_kprobe, true}};

enum Phase : std::size_t { kSelect, kAbilities, kPlan, kLoad, kLink, kDetach, kPhases };

/// What one process found out. Goes through a pipe.
struct Report {
  std::array<double, kPhases> ms{};
  std::uint64_t attached = 0;
  std::array<char, 256> error{};

  [[nodiscard]] double start() const { return std::accumulate(ms.begin(), ms.begin() + kDetach, 0.0); }
  [[nodiscard]] double both() const { return start() + ms[kDetach]; }
};

Result<KernelSelection> select(const std::vector<std::string>& texts) {
  auto patterns = parse_patterns(texts);
  if (!patterns) return fail(patterns.error());
  auto selection = usdt::select(*patterns);
  if (!selection) return fail(selection.error());
  return std::move(selection->kernel);
}

Result<Report> attach_ours(const Attaching& attaching, const std::string& glob) {
  Report report;
  Stopwatch watch;
  auto selection = select({fmt::format("{}:{}", attaching.prefix, glob)});
  if (!selection) return fail(selection.error());
  report.ms[kSelect] = watch.lap_ms();
  const KernelAbilities abilities = kernel_abilities(std::array{selection->entries.front().kind});
  report.ms[kAbilities] = watch.lap_ms();
  auto plan = plan_for(*selection, attaching, abilities);
  if (!plan) return fail(plan.error());
  report.ms[kPlan] = watch.lap_ms();
  auto program = OurProgram::load(std::move(*plan), {});
  if (!program) return fail(program.error());
  report.ms[kLoad] = watch.lap_ms();
  if (auto attached = program->attach(); !attached) return fail(attached.error());
  report.ms[kLink] = watch.lap_ms();
  report.attached = program->attached();
  watch.lap_ms();
  program->detach();
  report.ms[kDetach] = watch.lap_ms();
  return report;
}

Result<Report> attach_bare_once(const Attaching& attaching, const BareFunctions& functions) {
  Report report;
  Stopwatch watch;
  auto links = attach_bare({attaching.backend == Backend::perf_kprobe ? KernelFamily::kprobe : KernelFamily::any,
                            KernelPattern::parse(fmt::format("{}:x", attaching.prefix)).value().kind.moment},
                           attaching.backend, functions);
  if (!links) return fail(links.error());
  report.ms[kLink] = watch.lap_ms();
  report.attached = attaching.one_each ? links->links.size() : functions.btf_ids.size();
  watch.lap_ms();
  links->links.clear();
  report.ms[kDetach] = watch.lap_ms();
  return report;
}

/// In a process of its own: nothing is known of the kernel yet.
Result<Report> in_child(const std::function<Result<Report>()>& run) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return fail(os_failure(ErrorKind::io, "pipe", errno));
  const sys::UniqueFd from(ends[0]);
  sys::UniqueFd into(ends[1]);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return fail(os_failure(ErrorKind::io, "fork", errno));
  if (child == 0) {
    auto done = run();
    Report report = done ? *done : Report{};
    if (!done) std::strncpy(report.error.data(), done.error().message.c_str(), report.error.size() - 1);
    const bool written = ::write(into.get(), &report, sizeof(report)) == sizeof(report);
    ::_exit(written ? 0 : 1);
  }
  into.reset();
  Report report;
  const bool got = ::read(from.get(), &report, sizeof(report)) == sizeof(report);
  ::waitpid(child, nullptr, 0);
  if (!got) return fail(ErrorKind::io, "the process that attached died");
  if (report.error[0] != '\0') return fail(ErrorKind::io, report.error.data());
  return report;
}

/// A glob that about `wanted` functions match, of `names`, which are sorted.
std::string glob_for(std::size_t wanted, const std::vector<std::string>& names) {
  if (wanted == 0) return "*";
  if (wanted == 1) return "vfs_llseek";
  std::map<std::string, std::size_t> counts;
  for (const std::string& name : names) {
    for (std::size_t length = 1; length <= 4 && length < name.size(); ++length) ++counts[name.substr(0, length) + "*"];
    if (name[0] < 'a' || name[0] > 'z') continue;
    for (char first = 'a'; first <= name[0]; ++first)
      for (char last = name[0]; last <= 'z'; ++last) ++counts[fmt::format("[{}-{}]*", first, last)];
  }
  const auto distance = [&](const auto& each) {
    return each.second > wanted ? each.second - wanted : wanted - each.second;
  };
  return std::ranges::min_element(counts, {}, distance)->first;
}

/// All that kernels of today can do: the bare calls want every function that any of them takes.
KernelAbilities everything() {
  KernelAbilities all;
  all.kprobe_multi = all.kprobe_session = all.tracing = all.tracing_session = all.tracing_multi = true;
  all.func_arg = all.tp_btf_func_arg = all.perf_cookies = all.tracing_cookies = all.raw_tp_cookies = true;
  all.kernel_btf = true;
  return all;
}

Result<BareFunctions> bare_functions(const KernelSelection& selection, const Attaching& attaching) {
  auto plan = plan_for(only_of(selection, attaching.prefix), attaching, everything());
  if (!plan) return fail(plan.error());
  BareFunctions out;
  for (const PlannedFunction& function : plan->functions) {
    out.names.push_back(function.name);
    out.addresses.push_back(static_cast<unsigned long>(function.address));
    out.btf_ids.push_back(function.btf_id);
  }
  return out;
}

/// One way of attaching to one set of functions, over the rounds.
struct Measured {
  Attaching attaching;
  std::string glob;
  std::size_t wanted = 0;
  std::uint64_t functions = 0;
  std::vector<Report> ours;
  std::vector<Report> bare;
  std::string refusal;  ///< why it cannot be done

  static Series of(const std::vector<Report>& reports, const auto& number) {
    Series out;
    for (const Report& report : reports) out.push_back(number(report));
    return out;
  }
  static double median_of(const std::vector<Report>& reports, const auto& number) {
    return spread(of(reports, number)).median;
  }
  [[nodiscard]] double phase(Phase which) const {
    return median_of(ours, [&](const Report& report) { return report.ms[which]; });
  }
  [[nodiscard]] double bare_phase(Phase which) const {
    return median_of(bare, [&](const Report& report) { return report.ms[which]; });
  }
  /// Attach and detach.
  [[nodiscard]] Series ours_ms() const {
    return of(ours, [](const Report& report) { return report.both(); });
  }
  [[nodiscard]] Series bare_ms() const {
    return of(bare, [](const Report& report) { return report.both(); });
  }
};

Result<Measured> measure_one(const Attaching& attaching, std::size_t wanted, const std::string& glob,
                             const KernelSelection& selection, unsigned rounds) {
  Measured out{attaching, glob, wanted, 0, {}, {}, {}};
  auto functions = bare_functions(selection, attaching);
  if (!functions) return fail(functions.error());
  const auto ours = [&] { return attach_ours(attaching, glob); };
  const auto bare = [&] { return attach_bare_once(attaching, *functions); };
  for (unsigned round = 0; round < rounds; ++round) {
    for (const bool is_ours : {round % 2 == 0, round % 2 != 0}) {
      auto done = is_ours ? in_child(ours) : in_child(bare);
      if (!done) {
        out.refusal = fmt::format("{}: {}", is_ours ? "library" : "bare", done.error().message);
        return out;
      }
      (is_ours ? out.ours : out.bare).push_back(*done);
    }
  }
  out.functions = out.ours.front().attached;
  if (out.functions != out.bare.front().attached)
    return fail(ErrorKind::io, fmt::format("{} {}: {} functions attached, bare {}", attaching.name, glob, out.functions,
                                           out.bare.front().attached));
  return out;
}

std::string ms(double value) { return value < 100 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value); }

void add_row(Table& table, const Measured& m) {
  std::vector<std::string> row = {m.attaching.name, m.glob};
  if (!m.refusal.empty()) {
    row.insert(row.end(), {"", m.refusal});
    table.add(std::move(row));
    return;
  }
  row.push_back(fmt::format("{}", m.functions));
  for (const Phase phase : {kSelect, kAbilities, kPlan, kLoad, kLink}) row.push_back(ms(m.phase(phase)));
  row.push_back(ms(Measured::median_of(m.ours, [](const Report& report) { return report.start(); })));
  row.push_back(ms(m.phase(kDetach)));
  row.push_back(ms(m.bare_phase(kLink)));
  row.push_back(ms(m.bare_phase(kDetach)));
  row.push_back(text(spread(ratio(m.ours_ms(), m.bare_ms()))));
  table.add(std::move(row));
}

const Measured* find(const std::vector<Measured>& all, std::string_view name, std::size_t wanted) {
  const auto found = std::ranges::find_if(
      all, [&](const Measured& m) { return m.attaching.name == name && m.wanted == wanted && m.refusal.empty(); });
  return found == all.end() ? nullptr : &*found;
}

/// One link each: measured at `wanted`, or what the largest measured number comes to.
struct OneEach {
  double bare = 0;
  double ours = 0;
  std::string how;
};
std::optional<OneEach> one_each(const std::vector<Measured>& all, std::string_view name, std::size_t functions) {
  const Measured* best = nullptr;
  for (const Measured& m : all) {
    if (m.attaching.name == name && m.refusal.empty() && (!best || m.functions > best->functions)) best = &m;
  }
  if (!best) return std::nullopt;
  const double times = static_cast<double>(functions) / static_cast<double>(best->functions);
  const bool measured = times > 0.9 && times < 1.1;
  return OneEach{spread(best->bare_ms()).median * times, spread(best->ours_ms()).median * times,
                 measured ? "" : fmt::format(" (extrapolated from {})", best->functions)};
}

void compare_with_one_each(const std::vector<Measured>& all) {
  const std::size_t wanted = 1000;
  fmt::print("\nAttach and detach of about {} functions by one link, against a link for each:\n\n", wanted);
  Table table({"ours", "ms", "against", "ms", "times as fast", "wanted"});
  for (const auto& [many, single] :
       {std::pair{"fentry_multi", "fentry, one link each"}, {"kprobe_multi", "kprobe, one link each"}}) {
    const Measured* ours = find(all, many, wanted);
    if (!ours) continue;
    const auto each = one_each(all, single, ours->functions);
    if (!each) continue;
    const double took = spread(ours->ours_ms()).median;
    for (const auto& [who, theirs] : {std::pair{"bare", each->bare}, {"the library", each->ours}})
      table.add({many, ms(took), fmt::format("{}, {}{}", single, who, each->how), ms(theirs),
                 fmt::format("{:.0f}", theirs / took), theirs / took >= 50 ? "50: met" : "50: NOT MET"});
  }
  table.print();
}

void print_verdicts(const std::vector<Measured>& all) {
  fmt::print("\nAll functions, attach and detach, of the bare system calls:\n\n");
  Table table({"", "ours, ms", "bare, ms", "ratio", "wanted"});
  for (const Attaching& attaching : kMany) {
    const Measured* m = find(all, attaching.name, 0);
    if (!m) continue;
    const Spread times = spread(ratio(m->ours_ms(), m->bare_ms()));
    table.add({attaching.name, ms(spread(m->ours_ms()).median), ms(spread(m->bare_ms()).median), text(times),
               times.median <= 1.3 ? "1.3: met" : "1.3: NOT MET"});
  }
  table.print();
}

}  // namespace

Result<void> measure_attach(const KernelSettings& settings) {
  auto every = select({"fsession:*"});
  if (!every) return fail(every.error());
  std::vector<std::string> names;
  for (const auto& entry : every->entries) names.emplace_back(entry.function->name);
  fmt::print("\n### Attaching and detaching\n\nMilliseconds, medians of {} rounds (1 from {} functions on).\n\n",
             settings.attach_rounds, settings.once);
  Table table({"", "pattern", "number", "select", "abilities", "plan", "load", "link", "start", "detach", "bare link",
               "bare close", "of bare"});
  std::vector<Measured> all;
  const auto run = [&](const Attaching& attaching, std::size_t wanted, const std::string& glob,
                       const KernelSelection& selection) -> Result<void> {
    const unsigned rounds =
        wanted == 0 || wanted >= settings.once || (attaching.one_each && wanted >= 100) ? 1 : settings.attach_rounds;
    auto measured = measure_one(attaching, wanted, glob, selection, rounds);
    if (!measured) return fail(measured.error());
    add_row(table, *measured);
    fmt::print(stderr, "bench_kernel: {} {}: {}\n", attaching.name, glob,
               measured->refusal.empty() ? ms(spread(measured->ours_ms()).median) + " ms" : measured->refusal);
    all.push_back(std::move(*measured));
    return {};
  };
  const auto run_size = [&](std::size_t wanted, const auto& ways) -> Result<void> {
    const std::string glob = glob_for(wanted, names);
    std::vector<std::string> patterns;
    for (const Attaching& attaching : ways) patterns.push_back(fmt::format("{}:{}", attaching.prefix, glob));
    auto selection = select(patterns);
    if (!selection) return fail(selection.error());
    for (const Attaching& attaching : ways) {
      if (auto done = run(attaching, wanted, glob, *selection); !done) return done;
    }
    return {};
  };
  for (const std::size_t wanted : settings.sizes) {
    if (auto done = run_size(wanted, kMany); !done) return done;
  }
  for (const std::size_t wanted : {1, 20, 100, 1000}) {
    if (wanted > settings.one_each) continue;
    if (auto done = run_size(wanted, kOneEach); !done) return done;
  }
  table.print();
  compare_with_one_each(all);
  print_verdicts(all);
  return {};
}

}  // namespace usdt::bench
