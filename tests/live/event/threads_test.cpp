// SPDX-License-Identifier: BSD-2-Clause
// What the headers allow several threads to do at once. Built with ThreadSanitizer by the preset `threads`, which
// judges.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "own_typed.hpp"

// Of recursive mutexes that are initialised statically the sanitizer does not know that they are.
extern "C" const char* __tsan_default_options() { return "report_mutex_bugs=0"; }

namespace usdt {
namespace {

using namespace std::chrono_literals;
using test::or_throw;
using test::pass_typed;

class Threads : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "not root";
  }
};

TEST_F(Threads, may_wake_and_look_at_a_tracer_while_one_polls) {
  Tracer tracer = or_throw(Tracer::start(test::plan_own_typed()));
  std::atomic<bool> done = false;
  std::vector<std::jthread> others;
  for (int i = 0; i < 2; ++i) {
    others.emplace_back([&] {
      while (!done) {
        tracer.wake();
        EXPECT_EQ(tracer.link().attached(), tracer.plan().sites.size());
        EXPECT_TRUE(tracer.link().changes().empty());
        EXPECT_GT(tracer.layout().record_size(), 0U);
        (void)tracer.link().missed();
      }
    });
  }
  others.emplace_back([] { pass_typed(500); });
  std::size_t handed = 0;
  for (int round = 0; handed < 500; ++round) {
    if (round == 50) (void)or_throw(tracer.fd());
    handed += or_throw(tracer.poll([](const Event&) {}, 10ms));
  }
  done = true;
}

TEST_F(Threads, may_wake_a_ring_reader_while_one_reads) {
  test::OwnProgram reader;
  std::atomic<bool> done = false;
  const std::jthread waker([&] {
    while (!done) reader.wake();
  });
  const std::jthread passer([] { pass_typed(500); });
  for (std::size_t handed = 0; handed < 500;) handed += or_throw(reader.read([](int) {}));
  done = true;
}

TEST_F(Threads, may_read_copies_of_events_in_other_threads) {
  Tracer tracer = or_throw(Tracer::start(test::plan_own_typed()));
  pass_typed(100);
  const std::vector<OwnedEvent> events = or_throw(tracer.take(1s));
  ASSERT_EQ(events.size(), 100U);
  std::vector<std::jthread> readers;
  std::atomic<int> sum = 0;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&sum, copies = events] {
      for (const OwnedEvent& event : copies) sum += event->arg<int>(1).value_or(0);
    });
  }
  pass_typed(100);
  EXPECT_EQ(or_throw(tracer.poll([](const Event&) {}, 1s)), 100U);
  readers.clear();
  EXPECT_EQ(sum, 3 * 99 * 100 / 2);
}

TEST_F(Threads, may_load_one_object_and_attach_and_ask_at_once) {
  const BpfObject opened = or_throw(BpfObject::open(numbers_object()));
  const auto plan = std::make_shared<const AttachPlan>(test::plan_own_typed());
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const LoadedObject loaded = or_throw(opened.load(plan));
      std::vector<std::jthread> users;
      for (int user = 0; user < 2; ++user) {
        users.emplace_back([&] {
          const Link link = or_throw(loaded.attach());
          EXPECT_EQ(link.attached(), plan->sites.size());
          EXPECT_NE(loaded.global("usdt_unread_hits"), nullptr);
          EXPECT_TRUE(loaded.map_fd("numbers"));
        });
      }
    });
  }
}

TEST_F(Threads, may_ask_for_changed_files_while_one_is_let_go) {
  const std::filesystem::path copy = std::filesystem::temp_directory_path() / ("threads-" + std::to_string(::getpid()));
  std::filesystem::copy_file("/proc/self/exe", copy);
  const auto selection = or_throw(select({*ProbePattern::parse("usdt:" + copy.string() + ":own:typed")}));
  Link link = [&] {
    const BpfObject opened = or_throw(BpfObject::open(numbers_object()));
    return or_throw(or_throw(opened.load(or_throw(plan_attach(selection, kernel_facts())))).attach());
  }();
  std::jthread writer([&] { std::ofstream(copy, std::ios::app) << "more"; });
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (link.changes().empty() && std::chrono::steady_clock::now() < deadline) (void)link.missed_hits();
  ASSERT_EQ(link.changes().size(), 1U);
  EXPECT_EQ(link.changes().front().kind, FileChangeKind::written);
  link.detach();
  writer.join();
  std::filesystem::remove(copy);
}

/// A question about the hits of this process.
Question own_question() {
  Question question;
  question.points = or_throw(parse_points({"usdt:/proc/self/exe:own:typed"}));
  question.processes.pids = {::getpid()};
  complete_question(question);
  return question;
}

TEST_F(Threads, may_destroy_a_session_at_each_of_its_stages) {
  for (int stage = 0; stage < 5; ++stage) {
    AnswerConsumer nobody;
    Session session;
    if (stage > 0) session.add(own_question(), {&nobody});
    if (stage > 1) {
      ASSERT_TRUE(session.begin());
    }
    pass_typed(10);
    if (stage > 2) {
      EXPECT_TRUE(or_throw(session.step(10ms)));
    }
    if (stage > 3) {
      EXPECT_TRUE(session.finish());
    }
    const std::jthread other([mine = std::make_optional(std::move(session))]() mutable { mine.reset(); });
  }
}

TEST_F(Threads, may_ask_a_session_to_stop_while_one_steps) {
  AnswerConsumer nobody;
  Session session;
  session.add(own_question(), {&nobody});
  ASSERT_TRUE(session.begin());
  const std::jthread passer([] { pass_typed(100); });
  const std::jthread stopper([&] {
    std::this_thread::sleep_for(100ms);
    EXPECT_FALSE(session.over());
    session.request_stop();
  });
  while (or_throw(session.step(10ms))) continue;
  EXPECT_TRUE(session.over());
  EXPECT_TRUE(session.finish());
}

}  // namespace
}  // namespace usdt
