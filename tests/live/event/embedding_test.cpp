// SPDX-License-Identifier: BSD-2-Clause
// A program that was built with ThreadSanitizer and embeds the library. In the preset `threads` the library has the
// sanitizer, too, which then judges both; elsewhere it is as users have it, and what is judged is that the program,
// whose fork() and clone() are the sanitizer's, lives on and gets its events.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "own_typed.hpp"

extern "C" const char* __tsan_default_options() {
#if defined(USDT_LIBRARY_IS_NOT_SANITIZED)
  return "report_bugs=0";
#else
  return "report_mutex_bugs=0";  // of recursive mutexes that are initialised statically it does not know that they are
#endif
}

namespace usdt {
namespace {

using namespace std::chrono_literals;
using test::or_throw;

/// A process of its own that passes the probe own:typed every millisecond.
class Passer {
 public:
  Passer() : pid_(::fork()) {
    if (pid_ != 0) return;
    while (true) {
      test::pass_typed(1);
      ::usleep(1000);
    }
  }
  ~Passer() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Passer(const Passer&) = delete;
  Passer& operator=(const Passer&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

 private:
  pid_t pid_;
};

AttachPlan plan_of(pid_t pid) {
  const auto selection =
      or_throw(select({*ProbePattern::parse("own:typed")}, {.targets = {}, .pids = {pid}, .program = {}}));
  PlanOptions options;
  options.scope = or_throw(OneProcess::of(pid));
  return or_throw(plan_attach(selection, kernel_facts(), options));
}

/// True once an event of that process came, within a few seconds.
bool hears_of(Tracer& tracer, pid_t pid) {
  bool heard = false;
  for (const auto end = std::chrono::steady_clock::now() + 10s; !heard && std::chrono::steady_clock::now() < end;)
    or_throw(tracer.poll([&](const Event& event) { heard = heard || event.pid() == static_cast<std::uint32_t>(pid); },
                         10ms));
  return heard;
}

TEST(Embedding, adds_and_lets_go_of_a_process_while_other_threads_start_threads) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root";
  const std::array<Passer, 2> passers;
  Tracer tracer = or_throw(Tracer::start(plan_of(passers[0].pid())));
  std::vector<std::jthread> busy;
  for (int i = 0; i < 3; ++i) {
    busy.emplace_back([&tracer](const std::stop_token& over) {
      while (!over.stop_requested()) {
        std::jthread([] { auto memory = std::make_unique<std::array<char, 4096>>(); }).join();
        tracer.wake();
      }
    });
  }
  for (int round = 0; round < 8; ++round) {
    const AddedSites added = or_throw(tracer.add(plan_of(passers[1].pid())));
    EXPECT_GT(added.attached, 0U);
    EXPECT_TRUE(hears_of(tracer, passers[1].pid())) << "round " << round;
    EXPECT_EQ(or_throw(tracer.let_go({added.first_file})), added.attached);
  }
  busy.clear();
  EXPECT_TRUE(hears_of(tracer, passers[0].pid()));
}

}  // namespace
}  // namespace usdt
