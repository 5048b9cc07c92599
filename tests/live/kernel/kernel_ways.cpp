// SPDX-License-Identifier: BSD-2-Clause
#include "kernel_ways.hpp"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "kernel/selection.hpp"
#include "kernel_helpers.bpf.hpp"
#include "kernel_prototypes.hpp"
#include "kernel_witness.bpf.hpp"

namespace usdt::ways {
namespace {

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

/// A kernel without kprobes at all is no fault of ours.
void no_probes_here(const Error& error) {
  const bool kprobes = std::ifstream("/sys/bus/event_source/devices/kprobe/type").good();
  if (!kprobes) GTEST_SKIP() << "this kernel has no kprobes: " << error.message;
  FAIL() << error.message;
}

Result<KernelSelection> functions_with(Types types) {
  kernel::Sources sources;
  char directory[] = "/tmp/usdt-types-XXXXXX";
  if (types != Types::kernels) sources.btf = ::mkdtemp(directory);
  if (types == Types::ours) write_types(sources.btf);
  auto found = kernel::select_from(sources, {*KernelPattern::parse("kfunc:*")});
  if (types != Types::kernels) std::filesystem::remove_all(directory);
  return found;
}

}  // namespace

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

const Result<KernelSelection>& all_functions(Types types) {
  static std::map<Types, Result<KernelSelection>> all;
  auto known = all.find(types);
  if (known == all.end()) known = all.emplace(types, functions_with(types)).first;
  return known->second;
}

Selection select(std::string_view prefix, const Names& names, Types types) {
  KernelSelection selection = *all_functions(types);
  std::erase_if(selection.entries, [&](const auto& entry) { return !names.contains(entry.function->name); });
  std::erase_if(selection.refused, [&](const auto& refused) { return !names.contains(refused.name); });
  for (auto& entry : selection.entries) entry.kind = kind_of(prefix);
  return {.kernel = std::move(selection)};
}

std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.text(); }

std::vector<Way> every_way() { return {std::begin(kWays), std::end(kWays)}; }

std::vector<Way> ways_of_calls() {
  std::vector<Way> calls = every_way();
  std::erase_if(calls, [](const Way& way) { return way.kind().moment != Moment::both; });
  return calls;
}

std::string name_of(const testing::TestParamInfo<Way>& info) {
  return fmt::format("{}_{}", info.param.prefix, to_string(info.param.backend));
}

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

bool is_forced_elsewhere(const Way& way, const AttachPlan& plan) {
  if (way.backend != Backend::automatic || plan.groups.empty()) return false;
  const Backend taken = plan.groups[0].backend;
  tell("chosen", way.prefix, fmt::format("{} ({} functions)", to_string(taken), plan.sites.size()));
  return taken == Backend::perf_kprobe || taken == Backend::tracing;
}

void tell(std::string_view table, std::string_view row, const std::string& cell) {
  fmt::print("@@MATRIX {}: {}={}\n", table, row, cell);
}

void call_with(int id) {
  EXPECT_EQ(::syscall(SYS_keyctl, KEYCTL_REVOKE, id), -1);
  EXPECT_EQ(errno, -kItsResult);
}

void expect_whole(const ProbeCounts& counts) {
  EXPECT_EQ(counts.hits, counts.delivered + counts.ring_full + counts.calls_full + counts.unfinished +
                             counts.abandoned + counts.discarded);
}

void KernelTest::SetUp() {
  if (::geteuid() != 0) GTEST_SKIP() << "not root";
  if (wants_functions() && !all_functions()) GTEST_SKIP() << all_functions().error().message;
  kernel_log_ = ::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (kernel_log_ >= 0) ::lseek(kernel_log_, 0, SEEK_END);
}

/// The kernel complains of what it was made to do in its log.
void KernelTest::TearDown() {
  char line[8192];
  for (ssize_t got = 0; kernel_log_ >= 0 && (got = ::read(kernel_log_, line, sizeof(line) - 1)) > 0;) {
    line[got] = '\0';
    for (const char* bad : {"WARNING:", "BUG:", "Oops"}) EXPECT_FALSE(std::strstr(line, bad)) << line;
  }
  if (kernel_log_ >= 0) ::close(kernel_log_);
}

PlanOptions KernelTest::options(Backend backend) {
  PlanOptions options;
  options.scope = *OneProcess::of(::getpid());
  options.kernel_backend = backend;
  return options;
}

std::unique_ptr<Tracer> KernelTest::start(const AttachPlan& plan, const TraceOptions& how) {
  auto tracer = Tracer::start(plan, how);
  if (!tracer) {
    no_probes_here(tracer.error());
    return nullptr;
  }
  return std::make_unique<Tracer>(std::move(*tracer));
}

Tracer::Callback KernelTest::keep() {
  return [this](const Event& event) {
    Hit hit{Index<PlannedSite>(event.site_number()), event.pid(), event.tid(), event.timestamp(), event.duration(), {}};
    for (std::size_t n = 0; n < event.arg_count(); ++n) hit.values.push_back(event.value(n));
    hits_.push_back(std::move(hit));
  };
}

void KernelTest::finish(Tracer& tracer) {
  take(tracer);
  tracer.detach();
  tracer.drain(keep());
}

void EachWay::SetUp() {
  // First of all: a kernel without the way may lack the lists of functions as well, and no mount would help.
  if (::geteuid() == 0 && !GetParam().possible(abilities())) GTEST_SKIP() << "this kernel has no " << GetParam().text();
  KernelTest::SetUp();
}
INSTANTIATE_TEST_SUITE_P(Kernel, EachWay, testing::ValuesIn(every_way()), name_of);

Own::Own(const char* program, AttachPlan plan, const Reads& reads, LoadOptions options) : plan_(std::move(plan)) {
  auto object =
      *BpfObject::open(program == std::string_view("witness") ? kernel_witness_object() : kernel_helpers_object());
  if (program != std::string_view("witness")) {
    EXPECT_TRUE(object.set_constant("arguments", reads.arguments));
    EXPECT_TRUE(object.set_constant("text_argument", reads.text.value_or(0)));
    EXPECT_TRUE(object.set_constant("text_wanted", static_cast<std::uint8_t>(reads.text ? 1 : 0)));
  }
  options.programs = {program};
  auto loaded = object.load(plan_, options);
  if (!loaded) {
    error_ = loaded.error();
    return;
  }
  object_.emplace(std::move(*loaded));
  auto link = object_->attach(program);
  if (!link) {
    error_ = link.error();
    return;
  }
  link_.emplace(std::move(*link));
}

}  // namespace usdt::ways
