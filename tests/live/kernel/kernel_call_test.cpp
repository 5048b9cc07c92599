// SPDX-License-Identifier: BSD-2-Clause
// Calls of kernel functions as one event: arguments, result and duration, and every hit accounted for.
#include <linux/keyctl.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "kernel_ways.hpp"

namespace usdt::ways {
namespace {

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

class EachCall : public EachWay {
 protected:
  std::unique_ptr<Tracer> start_at(Names names, const TraceOptions& how = {}) {
    auto made = plan(GetParam(), names);
    if (!made) {
      ADD_FAILURE() << made.error().message;
      return nullptr;
    }
    plan_ = std::move(*made);
    return start(plan_, how);
  }
  AttachPlan plan_;
};
INSTANTIATE_TEST_SUITE_P(Kernel, EachCall, testing::ValuesIn(ways_of_calls()), name_of);

TEST_P(EachCall, has_arguments_result_and_duration) {
  const auto tracer = start_at({"hrtimer_nanosleep"});
  if (!tracer) return;
  const auto before = now();
  const timespec moment{0, 20'000'000};
  ASSERT_EQ(::syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &moment, nullptr), 0);
  const auto after = now();
  finish(*tracer);
  fmt::print("  {}: {}\n", GetParam().text(), tracer->link().backend_text());
  ASSERT_EQ(hits_.size(), 1U);
  EXPECT_GE(hits_[0].duration, 20'000'000U);
  EXPECT_GE(hits_[0].ts, before);
  EXPECT_LE(hits_[0].ts + hits_[0].duration, after);
  ASSERT_FALSE(hits_[0].values.empty());
  EXPECT_EQ(bits_of(hits_[0].values.back()), 0U);
  expect_whole(tracer->counts()[0]);
}

TEST_P(EachCall, of_many_threads_are_told_apart) {
  const auto tracer = start_at({kOneArgument});
  if (!tracer) return;
  constexpr int each = 300;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < each; ++i) call_with(1'000'000 + t * each + i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::uint64_t missed =
      tracer->missed().value_or(0);  // of tasks that came upon one preempted within the program
  finish(*tracer);
  std::set<std::uint64_t> seen;
  for (const Hit& hit : hits_) {
    EXPECT_EQ(cut(bits_of(hit.values.back()).value_or(0), 4), cut(static_cast<std::uint64_t>(kItsResult), 4));
    seen.insert(cut(bits_of(hit.values[0]).value_or(0), 4));
    EXPECT_GT(hit.duration, 0U);
  }
  EXPECT_LE(hits_.size(), 4U * each);
  EXPECT_GE(hits_.size() + missed, 4U * each) << "lost, and not counted";
  EXPECT_GE(hits_.size(), 1U * each);
  EXPECT_EQ(seen.size(), hits_.size());
  const ProbeCounts counts = tracer->counts()[0];
  expect_whole(counts);
  EXPECT_EQ(counts.delivered, hits_.size());
  fmt::print("  threads {}={} calls of 4 threads, {} delivered, {} missed\n", GetParam().text(), counts.hits,
             counts.delivered, missed);
}

/// So many processes, each calling so often, to their end.
void call_from_processes(int processes, int calls) {
  for (int i = 0; i < processes; ++i) {
    if (::fork() != 0) continue;
    for (int call = 0; call < calls; ++call) ::syscall(SYS_keyctl, KEYCTL_REVOKE, call);
    ::_exit(0);
  }
  while (::wait(nullptr) > 0) {
  }
}

// A task that is preempted within a trampoline's program leaves its processor blind for that program, so that of more
// busy processes than processors many hits are missed.
TEST_P(EachWay, accounts_for_every_call_of_many_processes) {
  const Way& way = GetParam();
  auto how = options(way.backend);
  how.scope = AllProcesses{};
  const auto planned = plan_attach(select(way.prefix, {kOneArgument}), facts(), how);
  ASSERT_TRUE(planned) << planned.error().message;
  const auto tracer = start(*planned, {.count_only = true});
  if (!tracer) return;
  constexpr std::uint64_t calls = 30'000;
  call_from_processes(6, calls / 6);
  tracer->detach();
  const ProbeCounts counts = tracer->counts()[0];
  const auto missed = tracer->missed();
  tell("calls of six processes on two processors", way.text(),
       fmt::format("{} of {}, {} by {}", counts.hits, calls,
                   missed ? fmt::format("{} missed", *missed) : "missed not known",
                   to_string(planned->groups[0].backend)));
  EXPECT_EQ(counts.missed, missed) << "the only probe";
  EXPECT_LE(counts.hits, calls);
  // Of a call, either end may be missed.
  if (missed) {
    EXPECT_GE(counts.hits + *missed, calls);
  }
  // What kernels have had longest has a bound at the return.
  const bool bounded = planned->groups[0].backend == Backend::perf_kprobe && way.at_return();
  if (way.kind().family != KernelFamily::trampoline && !bounded && abilities().kprobe_multi) {
    EXPECT_EQ(counts.hits, calls);
    EXPECT_EQ(missed, 0U);
  }
}

// The program at the one function reads a text by the other, whose hit is within it: the kernel runs no program within
// itself, and says so.
TEST_P(EachWay, counts_the_hits_within_its_own_programs) {
  const Way& way = GetParam();
  if (!way.has_arguments() || !abilities().kernel_btf) GTEST_SKIP() << "arguments of the entry with names are wanted";
  constexpr const char* reads = "strncpy_from_kernel_nofault";
  auto how = options(way.backend);
  how.texts.names = {"name"};
  const auto planned = plan_attach(select(way.prefix, {"vfs_getxattr", reads}), facts(), how);
  ASSERT_TRUE(planned) << planned.error().message;
  if (is_forced_elsewhere(way, *planned)) GTEST_SKIP() << "the backend it takes here has a test of its own";
  const auto tracer = start(*planned);
  if (!tracer) return;
  ASSERT_EQ(tracer->link().attached(), 2U);
  constexpr std::uint64_t calls = 20;
  for (std::uint64_t i = 0; i < calls; ++i) {
    char value[8];
    ::getxattr("/tmp", "user.usdt-missed", value, sizeof(value));
  }
  const auto missed = tracer->missed();
  finish(*tracer);
  std::uint64_t hits = 0;
  const auto counts = tracer->counts();
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (planned->probes[Index<PlannedProbe>(i)].name == reads) hits += counts[i].hits;
  tell("hits within programs", way.text(),
       missed ? fmt::format("{} run, {} missed", hits, *missed) : fmt::format("{} run, missed not known", hits));
  EXPECT_EQ(missed.has_value(), tracer->missed().has_value()) << "detached";
  EXPECT_TRUE(missed || !abilities().raw_tp_cookies) << "Linux 6.10 counts them";
  if (!missed) return;
  EXPECT_GE(hits + *missed, calls);
  EXPECT_GE(tracer->missed(), missed) << "detached";
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
  fmt::print("  unfinished {}=hits {} delivered {} unfinished {}\n", GetParam().text(), counts.hits, counts.delivered,
             counts.unfinished);
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
    full = tracer->counts()[0].calls_full + tracer->counts()[0].abandoned;
  }
  expect_whole(tracer->counts()[0]);
  const Backend backend = tracer->link().backend();
  const bool keeps_nothing =
      (backend == Backend::tracing || backend == Backend::tracing_multi) && plan_.groups[0].session;
  EXPECT_EQ(full > 0, !keeps_nothing);
}

/// Of a kernel without high-resolution timers the clock ticks so seldom that calls in each other begin at one time.
bool clock_is_coarse() {
  timespec tick{};
  ::clock_getres(CLOCK_MONOTONIC, &tick);
  return tick.tv_nsec > 1'000'000;
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
      if (outer.tid != inner.tid || outer.ts >= inner.ts || outer.ts + outer.duration <= inner.ts) continue;
      EXPECT_GE(outer.ts + outer.duration, inner.ts + inner.duration) << "it ends behind the call it is in";
      ++depth;
    }
    deepest = std::max(deepest, depth);
  }
  const ProbeCounts counts = tracer->counts()[0];
  expect_whole(counts);
  tell("recursion", GetParam().text(),
       fmt::format("{} calls, {} deep, {} without an end", counts.hits, deepest + 1, counts.unfinished));
  // perf's return probes remember max(10, 2 x processors) calls under way, before 3b7ddab8a19a (6.2 and stable kernels)
  // as many as there are processors unless the kernel can be preempted (register_kretprobe()). The ends of others are
  // lost.
  const bool forgets = plan_.groups[0].backend == Backend::perf_kprobe;
  EXPECT_EQ(counts.hits, 10U);
  if (clock_is_coarse()) {
    EXPECT_EQ(counts.delivered, 10U);
    return;
  }
  EXPECT_GE(deepest + 1, forgets ? std::min<std::size_t>(4, static_cast<std::size_t>(::get_nprocs_conf())) : 4U);
  if (deepest + 1 == 4) {
    EXPECT_EQ(counts.unfinished, 0U);
  }
}

}  // namespace
}  // namespace usdt::ways
