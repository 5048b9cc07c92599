// SPDX-License-Identifier: BSD-2-Clause
// Kernel functions by every way this kernel has, judged by values from outside: arguments of system calls that the test
// chose, BPF_PROG_TEST_RUN's, and registers that a program of our own reads by hand.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <set>
#include <thread>

#include "kernel_calls.hpp"
#include "kernel_helpers.bpf.hpp"
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
    if (wants_functions() && !all_functions()) GTEST_SKIP() << all_functions().error().message;
    kernel_log_ = ::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (kernel_log_ >= 0) ::lseek(kernel_log_, 0, SEEK_END);
  }
  [[nodiscard]] virtual bool wants_functions() const { return true; }
  /// The kernel complains of what it was made to do in its log.
  void TearDown() override {
    char line[8192];
    for (ssize_t got = 0; kernel_log_ >= 0 && (got = ::read(kernel_log_, line, sizeof(line) - 1)) > 0;) {
      line[got] = '\0';
      for (const char* bad : {"WARNING:", "BUG:", "Oops"}) EXPECT_FALSE(std::strstr(line, bad)) << line;
    }
    if (kernel_log_ >= 0) ::close(kernel_log_);
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
  int kernel_log_ = -1;
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
        // By version, a name is what user space passed, or the kernel's copy of it.
        const bool copy = args[n].type == "struct filename *" || args[n].type == "loff_t *";
        if (!copy) expected = known->second;
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
      ++judged.errors[fmt::format("{} of {}: {}", arg.result ? "result" : arg.name, reached.name, reason_of(value))];
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
  // Trampolines of kernels before 6.6 take six arguments, and no structs before 6.1.
  EXPECT_LE(tracer->link().refused().size(), GetParam().one_by_one() ? 12U : 0U);
  for (const SkippedSite& skipped : tracer->link().refused())
    fmt::print("  refused: {}: {}\n", planned->probes[skipped.probe].name, skipped.reason);

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

/// Registers read by hand, as the calling conventions have it.
constexpr std::size_t kMostSites = 4096;
constexpr std::size_t kStackWords = 6;
#if defined(__aarch64__)
constexpr std::size_t kRegisters = 8;
#else
constexpr std::size_t kRegisters = 6;
#endif
struct Seen {
  std::uint64_t hits;
  std::uint64_t registers[8];
  std::uint64_t stack[kStackWords];
};

/// A program of kernel_witness.bpf.c or kernel_helpers.bpf.c, attached.
class Own {
 public:
  Own(const char* program, AttachPlan plan, std::uint32_t text_argument = 0, const LoadOptions& options = {})
      : plan_(std::move(plan)),
        object_(std::move(*BpfObject::open(program == std::string_view("witness") ? kernel_witness_object()
                                                                                  : kernel_helpers_object()))) {
    static_cast<void>(object_.set_constant("text_argument", text_argument));  // the witness has none
    auto loaded = object_.load(plan_, options);
    if (!loaded) {
      error_ = loaded.error();
      return;
    }
    auto link = attach(object_, program, plan_);
    if (!link) {
      error_ = link.error();
      return;
    }
    link_.emplace(std::move(*link));
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  template <class T = std::uint64_t>
  T get(const char* variable, std::size_t n = 0) {
    T value;
    std::memcpy(&value, static_cast<const char*>(object_.global(variable)) + n * sizeof(T), sizeof(T));
    return value;
  }
  std::string text() { return static_cast<const char*>(object_.global("text")); }
  Link& link() { return *link_; }
  const AttachPlan& plan() const { return plan_; }

 private:
  AttachPlan plan_;
  BpfObject object_;
  std::optional<Link> link_;
  std::optional<Error> error_;
};

/// Functions of these prefixes, as many as the witness has room for; only those of the calls where each costs a link.
std::set<std::string, std::less<>> wide_names(const truth::Stage& stage, bool few) {
  std::set<std::string, std::less<>> names;
  for (const truth::Call& call : stage.calls())
    for (const truth::Reached& reached : call.functions) names.insert(reached.name);
  if (few) return names;
  for (const auto& entry : all_functions()->entries) {
    const std::string_view name = entry.function->name;
    for (const std::string_view prefix : {"do_", "vfs_", "ksys_", "__sys_", "security_", "unix_", "posix_", "filename_",
                                          "generic_", "ipc", "simple_", "shmem_", "sock_", "mm_", "vma_", "key"}) {
      if (name.starts_with(prefix) && names.size() < kMostSites - 200) names.insert(std::string(name));
    }
  }
  return names;
}

TEST_P(EachWay, agrees_with_registers_read_by_hand) {
#if defined(__i386__)
  GTEST_SKIP() << "without BTF nothing tells how wide arguments are";
#endif
  if (!GetParam().has_arguments()) GTEST_SKIP() << "registers of the return";
  const truth::Stage stage;
  const bool few = GetParam().one_by_one() || !abilities().kprobe_multi ||
                   (GetParam().backend == Backend::automatic && !abilities().tracing_multi);
  const auto names = wide_names(stage, few);
  const auto planned = plan(GetParam(), names);
  ASSERT_TRUE(planned) << planned.error().message;
  const Way by_hand{"kprobe", abilities().kprobe_multi ? Backend::kprobe_multi : Backend::perf_kprobe, nullptr};
  const auto witness_plan = plan(by_hand, names);
  ASSERT_TRUE(witness_plan) << witness_plan.error().message;
  ASSERT_LE(witness_plan->sites.size(), kMostSites);
  const auto tracer = start(*planned);
  if (!tracer) return;
  Own witness("witness", *witness_plan);
  ASSERT_FALSE(witness.error()) << witness.error()->message;
  std::map<std::string, std::uint32_t, std::less<>> witness_of;
  for (std::uint32_t site = 0; site < witness_plan->sites.size(); ++site)
    witness_of.try_emplace(witness_plan->functions[witness_plan->sites[site].function].name, site);

  take(*tracer);
  hits_.clear();
  std::vector<std::uint64_t> before(kMostSites);
  for (std::size_t i = 0; i < kMostSites; ++i) before[i] = witness.get<Seen>("seen", i).hits;
  std::set<std::string_view> functions;
  std::size_t right = 0;
  std::size_t wrong = 0;
  std::size_t unread = 0;
  const auto me = static_cast<std::uint32_t>(::gettid());
  for (const truth::Call& call : stage.calls()) {
    static_cast<void>(call.run());
    take(*tracer);
    std::map<std::uint32_t, std::pair<std::size_t, const Hit*>> last;
    for (const Hit& hit : hits_) {
      auto& [count, newest] = last[hit.site];
      ++count;
      if (!newest || hit.ts >= newest->ts) newest = &hit;
    }
    for (const auto& [site, known] : last) {
      const auto& [count, hit] = known;
      const std::string& name = planned->functions[planned->sites[site].function].name;
      const auto other = witness_of.find(name);
      if (other == witness_of.end() || hit->tid != me) continue;
      const Seen seen = witness.get<Seen>("seen", other->second);
      if (seen.hits - before[other->second] != count) continue;  // one of them has hits of the other's reading
      const std::vector<Arg>& args = planned->args[planned->sites[site].args];
      for (std::size_t n = 0; n < args.size() && !args[n].result; ++n) {
        const std::size_t place = n - kRegisters;
        if (args[n].size > 8 || args[n].type.starts_with("struct ") != args[n].type.ends_with("*")) break;
        if (n >= kRegisters && place >= kStackWords) break;
        const auto bits = bits_of(hit->values[n]);
        if (!bits) {
          ++unread;
          break;
        }
        const std::uint64_t expected = n < kRegisters ? seen.registers[n] : seen.stack[place];
        if (cut(*bits, args[n].size) == cut(expected, args[n].size)) {
          ++right;
        } else if (++wrong < 20) {
          ADD_FAILURE() << fmt::format("{}: {} ({}) is {:#x}, the register {:#x}", name, args[n].name, args[n].type,
                                       *bits, expected);
        }
      }
      functions.insert(name);
    }
    for (const Hit& hit : hits_) {
      const auto other = witness_of.find(planned->functions[planned->sites[hit.site].function].name);
      if (other != witness_of.end()) before[other->second] = witness.get<Seen>("seen", other->second).hits;
    }
    hits_.clear();
  }
  fmt::print("@@MATRIX witness {}={} of {} functions hit, {} arguments agree, {} wrong, {} without value\n",
             GetParam().text(), functions.size(), tracer->link().attached(), right, wrong, unread);
  EXPECT_EQ(wrong, 0U);
  EXPECT_GE(right, 100U);
}

/// Reads of a pipe that wait for a byte.
class BlockedRead {
 public:
  BlockedRead() {
    if (::pipe(pipe_) != 0) throw std::runtime_error("pipe");
    thread_ = std::thread([this] {
      char byte;
      tid_ = static_cast<std::uint32_t>(::gettid());
      result_ = ::read(pipe_[0], &byte, 1);
    });
    const auto state = [this] {
      std::ifstream stat(fmt::format("/proc/self/task/{}/stat", tid_.load()));
      std::string text;
      std::getline(stat, text);
      const auto at = text.rfind(')');
      return at == std::string::npos ? '?' : text[at + 2];
    };
    while (tid_ == 0 || state() != 'S') std::this_thread::sleep_for(5ms);
  }
  ~BlockedRead() { end(); }
  BlockedRead(const BlockedRead&) = delete;
  BlockedRead& operator=(const BlockedRead&) = delete;
  void end() {
    if (!thread_.joinable()) return;
    EXPECT_EQ(::write(pipe_[1], "x", 1), 1);
    thread_.join();
    EXPECT_EQ(result_, 1);
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  [[nodiscard]] std::uint32_t tid() const { return tid_; }

 private:
  int pipe_[2];
  std::thread thread_;
  std::atomic<std::uint32_t> tid_ = 0;
  ssize_t result_ = 0;
};

void expect_whole(const ProbeCounts& counts) {
  EXPECT_EQ(counts.hits,
            counts.delivered + counts.ring_full + counts.calls_full + counts.unfinished + counts.discarded);
}

class EachCall : public EachWay {
 protected:
  std::unique_ptr<Tracer> start_at(std::set<std::string, std::less<>> names, const TraceOptions& how = {}) {
    auto made = plan(GetParam(), names);
    if (!made) {
      ADD_FAILURE() << made.error().message;
      return nullptr;
    }
    plan_ = std::move(*made);
    return start(plan_, how);
  }
  void finish(Tracer& tracer) {
    take(tracer);
    tracer.detach();
    tracer.drain(keep());
  }
  AttachPlan plan_;
};
INSTANTIATE_TEST_SUITE_P(Kernel, EachCall, testing::ValuesIn([] {
                           std::vector<Way> calls;
                           for (const Way& way : kWays)
                             if (std::string_view(way.prefix).ends_with("session") ||
                                 std::string_view(way.prefix) == "kcall")
                               calls.push_back(way);
                           return calls;
                         }()),
                         name_of);

TEST_P(EachCall, has_arguments_result_and_duration) {
  const auto tracer = start_at({"hrtimer_nanosleep"});
  if (!tracer) return;
  const auto before = now();
  const timespec moment{0, 20'000'000};
  ASSERT_EQ(::syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &moment, nullptr), 0);
  const auto after = now();
  finish(*tracer);
  fmt::print("@@MATRIX {} session={}\n", GetParam().text(), tracer->link().backend_text());
  ASSERT_EQ(hits_.size(), 1U);
  EXPECT_GE(hits_[0].duration, 20'000'000U);
  EXPECT_GE(hits_[0].ts, before);
  EXPECT_LE(hits_[0].ts + hits_[0].duration, after);
  ASSERT_FALSE(hits_[0].values.empty());
  EXPECT_EQ(bits_of(hits_[0].values.back()), 0U);
  expect_whole(tracer->counts()[0]);
}

TEST_P(EachCall, of_many_threads_are_told_apart) {
  const auto tracer = start_at({"do_getpgid"});
  if (!tracer) return;
  constexpr int each = 300;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < each; ++i) ::syscall(SYS_getpgid, 1'000'000 + t * each + i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  finish(*tracer);
  std::set<std::uint64_t> seen;
  for (const Hit& hit : hits_) {
    EXPECT_EQ(cut(bits_of(hit.values.back()).value_or(0), 4), cut(static_cast<std::uint64_t>(-ESRCH), 4));
    seen.insert(cut(bits_of(hit.values[0]).value_or(0), 4));
    EXPECT_GT(hit.duration, 0U);
  }
  EXPECT_EQ(hits_.size(), 4U * each);
  EXPECT_EQ(seen.size(), 4U * each);
  EXPECT_EQ(*seen.begin(), 1'000'000U);
  const ProbeCounts counts = tracer->counts()[0];
  expect_whole(counts);
  EXPECT_EQ(counts.delivered, 4U * each);
  fmt::print("@@MATRIX threads {}={} calls of 4 threads, {} delivered, {} missed\n", GetParam().text(), counts.hits,
             counts.delivered, tracer->missed().value_or(0));
}

TEST_P(EachCall, under_way_at_start_and_end_are_no_calls) {
  BlockedRead early;
  const auto tracer = start_at({"ksys_read"});
  if (!tracer) return;
  early.end();
  BlockedRead late;
  finish(*tracer);
  for (const Hit& hit : hits_) {
    EXPECT_NE(hit.tid, early.tid());
    EXPECT_NE(hit.tid, late.tid());
  }
  const ProbeCounts counts = tracer->counts()[0];
  expect_whole(counts);
  EXPECT_EQ(counts.unfinished, 1U);
  fmt::print("@@MATRIX unfinished {}=hits {} delivered {} unfinished {}\n", GetParam().text(), counts.hits,
             counts.delivered, counts.unfinished);
}

TEST_P(EachCall, beyond_the_room_are_counted) {
  const auto tracer = start_at({"ksys_read"}, {.max_open_calls = 1});
  if (!tracer) return;
  std::uint64_t full = 0;
  {
    BlockedRead one;
    BlockedRead two;
    two.end();
    one.end();
    finish(*tracer);
    full = tracer->counts()[0].calls_full;
  }
  expect_whole(tracer->counts()[0]);
  const Backend backend = tracer->link().backend();
  const bool keeps_nothing =
      (backend == Backend::tracing || backend == Backend::tracing_multi) && plan_.kernels[0].session;
  EXPECT_EQ(full > 0, !keeps_nothing);
}

TEST_P(EachCall, of_functions_that_call_themselves_nest) {
  // Adding an epoll to another makes the kernel look for loops, one call in the other for each that is within.
  const auto tracer = start_at({"ep_loop_check_proc"});
  if (!tracer) return;
  int chain[5];
  for (int& each : chain) each = ::epoll_create1(0);
  for (int i = 3; i >= 0; --i) {
    epoll_event event{.events = EPOLLIN, .data = {}};
    ASSERT_EQ(::epoll_ctl(chain[i], EPOLL_CTL_ADD, chain[i + 1], &event), 0);
  }
  finish(*tracer);
  for (const int each : chain) ::close(each);
  std::size_t deepest = 0;
  for (const Hit& inner : hits_) {
    std::size_t depth = 0;
    for (const Hit& outer : hits_) {
      depth += outer.site == inner.site && outer.tid == inner.tid && outer.ts < inner.ts &&
               outer.ts + outer.duration > inner.ts + inner.duration;
    }
    deepest = std::max(deepest, depth);
  }
  fmt::print("@@MATRIX recursion {}={} calls, {} deep\n", GetParam().text(), hits_.size(), deepest);
  EXPECT_GE(deepest, 2U);
  for (const ProbeCounts& counts : tracer->counts()) {
    expect_whole(counts);
    EXPECT_EQ(counts.unfinished, 0U);
  }
}

// A program of one's own, the same text for all.

class EachOwn : public EachWay {};
INSTANTIATE_TEST_SUITE_P(Kernel, EachOwn, testing::ValuesIn(kWays), name_of);

TEST_P(EachOwn, program_reads_arguments_cookies_and_text) {
  const Way& way = GetParam();
  for (const Carrier carrier : {Carrier::automatic, Carrier::table, Carrier::per_link, Carrier::cookie}) {
    SCOPED_TRACE(to_string(carrier));
    auto how = options(way.backend);
    how.user_cookie_of_function = [](const KernelFunction& function) { return function.name.size() * 1000; };
    auto planned = plan_attach({}, select(way.prefix, {"do_getpgid", "ksys_lseek"}), how);
    ASSERT_TRUE(planned) << planned.error().message;
    Own own("read_everything", *planned, 0, {.carrier = carrier});
    if (own.error()) {
      if (!abilities().perf_cookies) {
        EXPECT_NE(carrier, Carrier::automatic) << own.error()->message;
        continue;  // by address is all there is
      }
      // Cookies that differ do not fit one.
      EXPECT_EQ(carrier, Carrier::cookie) << own.error()->message;
      EXPECT_EQ(own.error()->kind, ErrorKind::limit) << own.error()->message;
      continue;
    }
    ASSERT_EQ(::syscall(SYS_getpgid, 1'234'567), -1);
    fmt::print("@@MATRIX carrier {} {}={}\n", way.text(), to_string(carrier), own.link().carrier_text());
    EXPECT_EQ(own.get("cookie"), std::strlen("do_getpgid") * 1000);
    const std::uint64_t site = own.get("site_number");
    ASSERT_LT(site, planned->sites.size());
    EXPECT_EQ(planned->functions[planned->sites[site].function].name, "do_getpgid");
    const bool call = way.kind().moment == KernelMoment::call;
    const bool slots = planned->kernels[0].source != USDT_SOURCE_KERNEL;
    EXPECT_EQ(own.get("hits", 0), way.at_entry() ? 1U : 0U);
    EXPECT_EQ(own.get("hits", 1), way.at_return() ? 1U : 0U);
    if (!abilities().kernel_btf) continue;
    constexpr std::size_t end = 12;
    if (way.at_entry()) {
      EXPECT_EQ(own.get<std::int64_t>("errors", 0), 0);
      EXPECT_EQ(own.get("values", 0), 1'234'567U);
      EXPECT_EQ(own.get<std::int64_t>("errors", 1), call ? -ENODATA : -ENOENT);
    }
    if (way.at_return()) {
      const std::size_t result = way.at_entry() || slots ? 1 : 0;
      EXPECT_EQ(own.get<std::int64_t>("errors", end + result), 0);
      EXPECT_EQ(own.get<std::int64_t>("values", end + result), -ESRCH);
      EXPECT_EQ(own.get<std::int64_t>("errors", end + result + 1), -ENOENT);
      if (result == 1) {
        EXPECT_EQ(own.get<std::int64_t>("errors", end), slots ? 0 : -ENODATA);
        EXPECT_EQ(own.get("values", end), slots ? 1'234'567U : 0U);
      }
    }
  }
}

TEST_P(EachOwn, program_reads_what_is_behind_a_struct_passed_by_value) {
  const Way& way = GetParam();
  auto planned = plan(way, {"__sys_bpf"});
  if (!planned || planned->args[0].size() < 3 || planned->args[0][1].readable) GTEST_SKIP() << "no such argument";
  if (!way.has_arguments()) GTEST_SKIP() << "registers of the return";
  Own own("read_everything", *planned);
  ASSERT_FALSE(own.error()) << own.error()->message;
  const auto before = own.get("hits", 0);
  char nothing[72] = {};
  ASSERT_EQ(::syscall(SYS_bpf, 1234, nothing, sizeof(nothing)), -1);
  const std::int64_t result = -errno;
  EXPECT_EQ(own.get("hits", 0) - before, way.at_entry() ? 1U : 0U);
  const std::size_t at = way.at_entry() ? 0 : 12;
  EXPECT_EQ(own.get<std::int64_t>("errors", at), 0);
  EXPECT_EQ(own.get("values", at), 1234U);
  EXPECT_EQ(own.get<std::int64_t>("errors", at + 1), -EOPNOTSUPP);
  EXPECT_EQ(own.get<std::int64_t>("errors", at + 2), 0);
  EXPECT_EQ(own.get("values", at + 2), sizeof(nothing));
  const std::size_t last = planned->args[0].size() - 1;
  if (!way.at_return()) return;
  EXPECT_EQ(own.get<std::int64_t>("errors", 12 + last), 0);
  EXPECT_EQ(own.get<std::int64_t>("values", 12 + last), result);
}

TEST_P(EachOwn, program_reads_text_of_both_address_spaces) {
  const Way& way = GetParam();
  if (!way.at_entry() || !abilities().kernel_btf) GTEST_SKIP() << "arguments of the entry with names are wanted";
  const auto text_of = [&](const char* function, const char* argument, const std::function<void()>& call) {
    auto planned = plan(way, {function});
    if (!planned) return planned.error().message;
    for (std::uint32_t n = 0; n < planned->args[0].size(); ++n) {
      if (planned->args[0][n].name != argument) continue;
      Own own("read_everything", *planned, n);
      if (own.error()) return own.error()->message;
      call();
      return own.text();
    }
    return std::string("no such argument");
  };
  EXPECT_EQ(text_of("do_sys_openat2", "filename", [] { ::syscall(SYS_openat, AT_FDCWD, "/tmp/usdt none", 0, 0); }),
            "/tmp/usdt none");
  EXPECT_EQ(text_of("vfs_getxattr", "name",
                    [] {
                      char value[8];
                      ::getxattr("/tmp", "user.usdt-truth", value, sizeof(value));
                    }),
            "user.usdt-truth");
}

// What the kernel refuses.

TEST_P(EachWay, leaves_out_what_the_kernel_refuses_and_attaches_the_rest) {
  auto planned = plan(GetParam(), {"do_getpgid", "ksys_lseek", "ksys_read", "ksys_write"});
  ASSERT_TRUE(planned) << planned.error().message;
  ASSERT_EQ(planned->sites.size(), 4U);
  const auto bad = static_cast<std::uint32_t>(
      std::find_if(planned->functions.begin(), planned->functions.end(),
                   [](const PlannedFunction& function) { return function.name == "ksys_lseek"; }) -
      planned->functions.begin());
  // Another's address, in the middle of nothing.
  planned->functions[bad].address += 32;
  planned->functions[bad].btf_id = 1;
  const auto tracer = start(*planned);
  if (!tracer) return;
  EXPECT_EQ(tracer->link().attached(), 3U);
  ASSERT_EQ(tracer->link().refused().size(), 1U);
  for (const SkippedSite& refused : tracer->link().refused()) {
    EXPECT_EQ(planned->probes[refused.probe].name, "ksys_lseek");
    EXPECT_THAT(refused.reason, HasSubstr("the kernel refuses it"));
  }
  fmt::print("@@MATRIX refused {}={} of 4 attached: {}\n", GetParam().text(), tracer->link().attached(),
             tracer->link().refused()[0].reason);
}

TEST_F(KernelTest, names_the_reason_of_a_function_that_cannot_be_traced) {
  std::size_t known = 0;
  for (const char* name : {"exc_int3", "do_int3", "kprobe_int3_handler", "el1h_64_sync_handler", "notify_die",
                           "get_kprobe", "asm_exc_int3"}) {
    for (const char* prefix : {"kprobe", "fentry", "kfunc"}) {
      const auto found = select_kernel({*KernelPattern::parse(fmt::format("{}:{}", prefix, name))});
      if (!found) {
        EXPECT_EQ(found.error().kind, ErrorKind::not_found) << found.error().message;
        continue;
      }
      const auto one = plan_attach({}, *found, options(Backend::automatic));
      if (one) {
        fmt::print("  {}:{} is planned by {}\n", prefix, name, to_string(one->kernels[0].backend));
        continue;
      }
      ++known;
      fmt::print("  {}:{}: {}\n", prefix, name, one.error().message);
      EXPECT_EQ(one.error().kind, ErrorKind::not_supported);
    }
  }
  EXPECT_GE(known, 1U);
}

TEST_F(KernelTest, a_function_with_variable_arguments_is_for_kprobes_alone) {
  if (!abilities().kernel_btf || !abilities().tracing) GTEST_SKIP() << "no trampolines";
  const auto slots = plan_attach({}, select("fentry", {"seq_printf"}), options(Backend::automatic));
  ASSERT_FALSE(slots);
  EXPECT_THAT(slots.error().message, HasSubstr("variable arguments"));
  const auto any = plan_attach({}, select("kfunc", {"seq_printf"}), options(Backend::automatic));
  ASSERT_TRUE(any) << any.error().message;
  const auto tracer = start(*any);
  if (!tracer) return;
  std::ifstream limits("/proc/self/limits");
  std::string line;
  std::getline(limits, line);
  std::getline(limits, line);
  take(*tracer);
  EXPECT_FALSE(hits_.empty());
}

TEST_F(KernelTest, of_another_process_do_not_count) {
  const auto planned = plan({"kfunc", Backend::automatic, nullptr}, {"do_getpgid"});
  ASSERT_TRUE(planned) << planned.error().message;
  const auto tracer = start(*planned);
  if (!tracer) return;
  const pid_t child = ::fork();
  if (child == 0) {
    ::syscall(SYS_getpgid, 77'777);
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  ::syscall(SYS_getpgid, 77'778);
  take(*tracer);
  ASSERT_EQ(hits_.size(), 1U);
  EXPECT_EQ(cut(*bits_of(hits_[0].values[0]), 4), 77'778U);
}

/// Lines of a file of tracefs; nothing where it cannot be read.
std::size_t lines_of(const std::vector<const char*>& paths) {
  for (const char* path : paths) {
    std::ifstream file(path);
    if (!file) continue;
    std::size_t lines = 0;
    for (std::string line; std::getline(file, line);) ++lines;
    return lines;
  }
  return 0;
}

TEST_P(EachWay, leaves_nothing_when_the_tracer_is_killed) {
  const auto left = [] {
    return lines_of({"/sys/kernel/tracing/enabled_functions", "/sys/kernel/debug/tracing/enabled_functions"}) +
           lines_of({"/sys/kernel/debug/kprobes/list"});
  };
  const auto before = left();
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto planned = plan(GetParam(), {"do_getpgid", "ksys_lseek", "ksys_write"});
    if (!planned) ::_exit(1);
    auto tracer = Tracer::start(*planned);
    if (!tracer) ::_exit(2);
    if (::write(ready[1], "x", 1) != 1) ::_exit(3);
    for (;;) ::pause();
  }
  ::close(ready[1]);
  char byte;
  const bool up = ::read(ready[0], &byte, 1) == 1;
  ::close(ready[0]);
  const auto during = left();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(up);
  auto after = left();
  for (int i = 0; after > before && i < 200; ++i) {
    std::this_thread::sleep_for(50ms);
    after = left();
  }
  EXPECT_EQ(after, before);
  fmt::print("@@MATRIX killed {}={} lines before, {} while attached, {} after\n", GetParam().text(), before, during,
             after);
}

// Raw tracepoints.

class EachTracepoint : public KernelTest, public testing::WithParamInterface<const char*> {
 protected:
  [[nodiscard]] bool wants_functions() const override { return false; }
};
INSTANTIATE_TEST_SUITE_P(Kernel, EachTracepoint, testing::Values("raw_tp", "tp_btf"));

TEST_P(EachTracepoint, tells_number_and_result_of_system_calls) {
  if (!abilities().kernel_btf) GTEST_SKIP() << "no BTF";
  const auto selection = select_kernel({*KernelPattern::parse(fmt::format("{}:sys_enter", GetParam())),
                                        *KernelPattern::parse(fmt::format("{}:sys_exit", GetParam()))});
  ASSERT_TRUE(selection) << selection.error().message;
  const auto planned = plan_attach({}, *selection, options(Backend::automatic));
  ASSERT_TRUE(planned) << planned.error().message;
  {
    const auto tracer = start(*planned);
    if (!tracer) return;
    ::syscall(SYS_getpgid, 87'654);
    tracer->detach();
    tracer->drain(keep());
    bool entered = false;
    bool left = false;
    for (const Hit& hit : hits_) {
      const std::string& name = planned->functions[planned->sites[hit.site].function].name;
      ASSERT_EQ(hit.values.size(), 2U);
      const auto second = bits_of(hit.values[1]);
      ASSERT_TRUE(second) << reason_of(hit.values[1]);
      entered |= name == "sys_enter" && *second == SYS_getpgid;
      left |= entered && name == "sys_exit" && *second == static_cast<std::uint64_t>(-ESRCH);
    }
    EXPECT_TRUE(entered);
    EXPECT_TRUE(left);
    fmt::print("@@MATRIX {}={}, {}\n", GetParam(), tracer->link().backend_text(), tracer->link().carrier_text());
  }
  const bool cookies = abilities().perf_cookies;
  for (const Carrier carrier :
       {cookies ? Carrier::table : Carrier::ip_hash, cookies ? Carrier::per_link : Carrier::automatic}) {
    Own own("read_everything", *planned, 0, {.carrier = carrier});
    ASSERT_FALSE(own.error()) << own.error()->message;
    ::syscall(SYS_getpgid, 87'655);
    EXPECT_GE(own.get("hits", 0), 2U);
    EXPECT_EQ(own.get("count"), 2U);
    EXPECT_EQ(own.get<std::int64_t>("errors", 1), 0);
    EXPECT_EQ(own.get<std::int64_t>("errors", 2), -ENOENT);
  }
}

}  // namespace
}  // namespace usdt
