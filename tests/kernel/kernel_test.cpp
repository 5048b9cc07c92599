// SPDX-License-Identifier: BSD-2-Clause
// Kernel functions by every way this kernel has, judged by values from outside: arguments of system calls that the test
// chose, BPF_PROG_TEST_RUN's, and registers that a program of our own reads by hand.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <set>
#include <thread>

#include "kernel_calls.hpp"
#include "kernel_witness.bpf.hpp"
#include "usdt/usdt.hpp"

namespace usdt {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

std::uint64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

const KernelAbilities& abilities() {
  static const KernelAbilities found = kernel_abilities();
  return found;
}

KernelKind kind_of(std::string_view prefix) {
  auto pattern = KernelPattern::parse(fmt::format("{}:x", prefix));
  EXPECT_TRUE(pattern) << pattern.error().message;
  return pattern->kind;
}

/// Every function of the kernel, looked up once.
const Result<KernelSelection>& all_functions() {
  static const Result<KernelSelection> all = select_kernel({*KernelPattern::parse("kfunc:*")});
  return all;
}

/// `names` of them, to be attached as `prefix` says.
KernelSelection select(std::string_view prefix, const std::set<std::string, std::less<>>& names) {
  KernelSelection selection = *all_functions();
  std::erase_if(selection.entries, [&](const auto& entry) { return !names.contains(entry.function->name); });
  std::erase_if(selection.refused, [&](const auto& refused) { return !names.contains(refused.name); });
  for (auto& entry : selection.entries) entry.kind = kind_of(prefix);
  return selection;
}

/// A way to attach, by the prefix of names and the backend.
struct Way {
  const char* prefix;
  Backend backend;
  bool (*possible)(const KernelAbilities&);

  [[nodiscard]] KernelKind kind() const { return kind_of(prefix); }
  [[nodiscard]] bool at_entry() const { return kind().moment != KernelMoment::exit; }
  [[nodiscard]] bool at_return() const { return kind().moment != KernelMoment::entry; }
  [[nodiscard]] bool one_by_one() const { return backend == Backend::tracing || backend == Backend::perf_kprobe; }
  [[nodiscard]] bool has_arguments() const { return at_entry() || kind().family == KernelFamily::trampoline; }
  [[nodiscard]] std::string text() const { return fmt::format("{}={}", prefix, to_string(backend)); }
};

std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.text(); }

constexpr Way kWays[] = {
    {"kprobe", Backend::kprobe_multi, [](const KernelAbilities& k) { return k.kprobe_multi; }},
    {"kprobe", Backend::perf_kprobe, [](const KernelAbilities&) { return true; }},
    {"kretprobe", Backend::kprobe_multi, [](const KernelAbilities& k) { return k.kprobe_multi; }},
    {"kretprobe", Backend::perf_kprobe, [](const KernelAbilities&) { return true; }},
    {"ksession", Backend::kprobe_session, [](const KernelAbilities& k) { return k.kprobe_session; }},
    {"ksession", Backend::kprobe_multi, [](const KernelAbilities& k) { return k.kprobe_multi; }},
    {"ksession", Backend::perf_kprobe, [](const KernelAbilities&) { return true; }},
    {"fentry", Backend::tracing_multi, [](const KernelAbilities& k) { return k.tracing_multi; }},
    {"fentry", Backend::tracing, [](const KernelAbilities& k) { return k.tracing; }},
    {"fexit", Backend::tracing_multi, [](const KernelAbilities& k) { return k.tracing_multi; }},
    {"fexit", Backend::tracing, [](const KernelAbilities& k) { return k.tracing; }},
    {"fsession", Backend::tracing_multi, [](const KernelAbilities& k) { return k.tracing_multi; }},
    {"fsession", Backend::tracing, [](const KernelAbilities& k) { return k.tracing; }},
    {"kfunc", Backend::automatic, [](const KernelAbilities&) { return true; }},
    {"kretfunc", Backend::automatic, [](const KernelAbilities&) { return true; }},
    {"kcall", Backend::automatic, [](const KernelAbilities&) { return true; }},
};

std::string name_of(const testing::TestParamInfo<Way>& info) {
  return fmt::format("{}_{}", info.param.prefix, to_string(info.param.backend));
}

/// What was recorded of one hit.
struct Hit {
  std::uint32_t site;
  std::uint32_t pid;
  std::uint32_t tid;
  std::uint64_t ts;
  std::uint64_t duration;
  std::vector<Value> values;
};

std::optional<std::uint64_t> bits_of(const Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return static_cast<std::uint64_t>(*number);
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return *number;
  return std::nullopt;
}
std::string reason_of(const Value& value) {
  const auto* error = std::get_if<ArgError>(&value);
  return error ? std::string(error->reason) : std::string();
}

std::uint64_t cut(std::uint64_t bits, std::uint32_t size) {
  return size >= 8 ? bits : bits & ((std::uint64_t{1} << 8 * size) - 1);
}

class KernelTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "not root";
    if (!all_functions()) GTEST_SKIP() << all_functions().error().message;
  }

  static PlanOptions options(Backend backend) {
    PlanOptions options;
    options.scope = OneProcess{::getpid()};
    options.kernel = abilities();
    options.kernel_backend = backend;
    return options;
  }

  static Result<AttachPlan> plan(const Way& way, const std::set<std::string, std::less<>>& names) {
    return plan_attach({}, select(way.prefix, names), options(way.backend));
  }

  /// Attached, or null with the test skipped where this machine cannot at all.
  std::unique_ptr<Tracer> start(const AttachPlan& plan, const TraceOptions& how = {}) {
    auto tracer = Tracer::start(plan, how);
    if (!tracer) {
      no_probes_here(tracer.error());
      return nullptr;
    }
    return std::make_unique<Tracer>(std::move(*tracer));
  }

  /// A kernel without kprobes at all is no fault of ours.
  static void no_probes_here(const Error& error) {
    const bool kprobes = std::ifstream("/sys/bus/event_source/devices/kprobe/type").good();
    if (!kprobes) GTEST_SKIP() << "this kernel has no kprobes: " << error.message;
    FAIL() << error.message;
  }

  Tracer::Callback keep() {
    return [this](const Event& event) {
      Hit hit{event.site_number(), event.pid(), event.tid(), event.timestamp(), event.duration(), {}};
      for (std::size_t n = 0; n < event.arg_count(); ++n) hit.values.push_back(event.value(n));
      hits_.push_back(std::move(hit));
    };
  }
  void take(Tracer& tracer) {
    while (tracer.poll(keep(), 0ms).value_or(0) > 0) {
    }
  }

  std::vector<Hit> hits_;
};

class EachWay : public KernelTest, public testing::WithParamInterface<Way> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped()) return;
    if (!GetParam().possible(abilities())) GTEST_SKIP() << "this kernel has no " << GetParam().text();
  }
};
INSTANTIATE_TEST_SUITE_P(Kernel, EachWay, testing::ValuesIn(kWays), name_of);

/// One function that calls reached, in all its hits.
struct Judged {
  std::size_t right = 0;
  std::size_t wrong = 0;
  std::map<std::string, std::size_t> errors;  ///< by reason
  std::string fault;                          ///< of the first wrong one
};

class Judge {
 public:
  Judge(const AttachPlan& plan, const Way& way) : plan_(plan), way_(way) {
    for (std::uint32_t site = 0; site < plan.sites.size(); ++site)
      site_of_.try_emplace(plan.functions[plan.sites[site].function].name, site);
  }

  /// `hits`: those of this thread during the call.
  void judge(const truth::Call& call, const std::vector<const Hit*>& hits, long result) {
    for (const truth::Reached& reached : call.functions) {
      const auto site = site_of_.find(reached.name);
      if (site == site_of_.end()) {
        absent_.insert(reached.name);
        continue;
      }
      // Of several hits, the one that is right: inner calls have arguments of their own.
      std::optional<Judged> best;
      for (const Hit* hit : hits) {
        if (hit->site != site->second) continue;
        Judged judged = compare(call, reached, *hit, result);
        if (!best || judged.wrong < best->wrong) best = std::move(judged);
      }
      if (!best) {
        unreached_.insert(reached.name);
        continue;
      }
      functions_.insert(reached.name);
      right_ += best->right;
      wrong_ += best->wrong;
      for (const auto& [reason, count] : best->errors) errors_[reason] += count;
      if (!best->fault.empty()) faults_.push_back(best->fault);
    }
  }

  void report() {
    for (const std::string& name : functions_) unreached_.erase(name);
    std::size_t errors = 0;
    for (const auto& [reason, count] : errors_) {
      errors += count;
      fmt::print("  typed error {} times: {}\n", count, reason);
    }
    fmt::print("  absent: {} {}\n  not reached: {} {}\n", absent_.size(), fmt::join(absent_, " "), unreached_.size(),
               fmt::join(unreached_, " "));
    fmt::print("@@MATRIX truth {}={} functions, {} arguments right, {} wrong, {} typed errors\n", way_.text(),
               functions_.size(), right_, wrong_, errors);
    EXPECT_EQ(wrong_, 0U);
    for (const std::string& fault : faults_) ADD_FAILURE() << fault;
  }
  [[nodiscard]] std::size_t functions() const { return functions_.size(); }

 private:
  Judged compare(const truth::Call& call, const truth::Reached& reached, const Hit& hit, long result) {
    Judged judged;
    const std::vector<Arg>& args = plan_.args[plan_.sites[hit.site].args];
    std::size_t place = 0;
    for (std::size_t n = 0; n < args.size(); ++n) {
      std::optional<std::uint64_t> expected;
      if (args[n].result) {
        if (reached.returns) expected = static_cast<std::uint64_t>(result);
      } else if (const auto known = call.names.find(args[n].name); known != call.names.end() && !reached.positional) {
        expected = known->second;
      } else if (reached.positional && place < call.args.size()) {
        expected = call.args[place];
      }
      ++place;
      if (expected) check(call, reached, args[n], hit.values[n], *expected, judged);
    }
    return judged;
  }

  static void check(const truth::Call& call, const truth::Reached& reached, const Arg& arg, const Value& value,
                    std::uint64_t expected, Judged& judged) {
    const auto bits = bits_of(value);
    if (!bits) {
      ++judged.errors[reason_of(value)];
      return;
    }
    if (cut(*bits, arg.size) == cut(expected, arg.size)) {
      ++judged.right;
      return;
    }
    ++judged.wrong;
    judged.fault += fmt::format("{}: {} of {} is {:#x}, not {:#x}\n", call.functions.front().name,
                                arg.result ? "result" : arg.name, reached.name, *bits, expected);
  }

  const AttachPlan& plan_;
  const Way& way_;
  std::map<std::string, std::uint32_t, std::less<>> site_of_;
  std::set<std::string> functions_;
  std::set<std::string> absent_;
  std::set<std::string> unreached_;
  std::size_t right_ = 0;
  std::size_t wrong_ = 0;
  std::map<std::string, std::size_t> errors_;
  std::vector<std::string> faults_;
};

TEST_P(EachWay, gives_the_arguments_that_were_passed) {
  if (!abilities().kernel_btf) GTEST_SKIP() << "without BTF arguments have no names";
  const truth::Stage stage;
  std::set<std::string, std::less<>> names;
  for (const truth::Call& call : stage.calls())
    for (const truth::Reached& reached : call.functions) names.insert(reached.name);
  const auto planned = plan(GetParam(), names);
  ASSERT_TRUE(planned) << planned.error().message;
  for (const SkippedSite& skipped : planned->skipped)
    fmt::print("  refused: {}: {}\n", planned->probes[skipped.probe].name, skipped.reason);
  const auto before = now();
  const auto tracer = start(*planned);
  if (!tracer) return;
  fmt::print("@@MATRIX attach {}={} functions of {} by {} in {} ms, {} refused by the kernel, {}\n", GetParam().text(),
             tracer->link().attached(), planned->sites.size(), tracer->link().backend_text(),
             (now() - before) / 1'000'000, tracer->link().refused().size(), tracer->link().carrier_text());
  for (const SkippedSite& skipped : tracer->link().refused())
    ADD_FAILURE() << "refused by the kernel: " << planned->probes[skipped.probe].name << ": " << skipped.reason;

  struct Done {
    const truth::Call* call;
    std::uint64_t from;
    std::uint64_t to;
    long result;
  };
  std::vector<Done> done;
  for (const truth::Call& call : stage.calls()) {
    take(*tracer);
    Done& each = done.emplace_back(Done{&call, now(), 0, 0});
    each.result = call.run();
    each.to = now();
  }
  take(*tracer);
  tracer->detach();
  tracer->drain(keep());
  std::uint64_t lost = 0;
  for (const ProbeCounts& counts : tracer->counts()) lost += counts.ring_full + counts.calls_full;
  EXPECT_EQ(lost, 0U);

  Judge judge(*planned, GetParam());
  const auto me = static_cast<std::uint32_t>(::gettid());
  for (const Done& each : done) {
    std::vector<const Hit*> hits;
    for (const Hit& hit : hits_)
      if (hit.tid == me && hit.ts >= each.from && hit.ts <= each.to) hits.push_back(&hit);
    judge.judge(*each.call, hits, each.result);
  }
  judge.report();
  EXPECT_GE(judge.functions(), 100U);
}

}  // namespace
}  // namespace usdt
