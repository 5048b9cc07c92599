// SPDX-License-Identifier: BSD-2-Clause
// Tracer and RingReader in event loops: when their descriptors are readable. The kernel's poll(2) and epoll(7) judge.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <thread>
#include <vector>

#include "own_typed.hpp"

namespace usdt {
namespace {

using namespace std::chrono_literals;
using test::or_throw;
using test::pass_typed;
using testing::ElementsAre;
using testing::IsEmpty;

/// Waits for it: the kernel wakes pollers from an interrupt, a moment after a record is there.
bool becomes_readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 2000) == 1;
}
bool is_readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

template <class Reader>
class EventLoop : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "not root";
  }
  static test::OnNumber into(std::vector<int>& numbers) {
    return [&numbers](int number) { numbers.push_back(number); };
  }
};
using Readers = testing::Types<test::StockProgram, test::OwnProgram>;
class Names {
 public:
  template <class Reader>
  static std::string GetName(int) {
    return std::is_same_v<Reader, test::OwnProgram> ? "RingReader" : "Tracer";
  }
};
TYPED_TEST_SUITE(EventLoop, Readers, Names);

TYPED_TEST(EventLoop, hears_of_hits_until_they_are_handed_over) {
  TypeParam reader;
  std::vector<int> seen;
  EXPECT_FALSE(is_readable(reader.fd()));
  pass_typed(2);
  EXPECT_TRUE(becomes_readable(reader.fd()));
  EXPECT_TRUE(is_readable(reader.fd())) << "looking takes nothing";
  EXPECT_EQ(reader.read(this->into(seen)).value_or(0), 2U);
  EXPECT_FALSE(is_readable(reader.fd()));
  pass_typed(1, 2);
  EXPECT_TRUE(becomes_readable(reader.fd()));
  EXPECT_EQ(reader.read(this->into(seen)).value_or(0), 1U);
  EXPECT_THAT(seen, ElementsAre(0, 1, 2));
}

TYPED_TEST(EventLoop, hears_of_what_a_limit_left_in_the_ring) {
  TypeParam reader;
  std::vector<int> seen;
  pass_typed(5);
  for (const std::size_t expected : {2U, 2U, 1U}) {
    EXPECT_TRUE(becomes_readable(reader.fd()));
    EXPECT_EQ(reader.read(this->into(seen), 2).value_or(0), expected);
  }
  EXPECT_FALSE(is_readable(reader.fd()));
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4));
}

TYPED_TEST(EventLoop, hears_of_hits_from_before_it_asked) {
  TypeParam reader;
  pass_typed(1);
  std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(is_readable(reader.fd()));
}

TYPED_TEST(EventLoop, hears_of_what_is_behind_a_callback_that_throws) {
  TypeParam reader;
  std::vector<int> seen;
  pass_typed(3);
  ASSERT_TRUE(becomes_readable(reader.fd()));
  EXPECT_THROW((void)reader.read([](int) { throw std::runtime_error("not this one"); }), std::runtime_error);
  EXPECT_TRUE(is_readable(reader.fd()));
  EXPECT_EQ(reader.read(this->into(seen)).value_or(0), 2U);
  EXPECT_FALSE(is_readable(reader.fd()));
  EXPECT_THAT(seen, ElementsAre(1, 2)) << "each is handed over once";
}

TYPED_TEST(EventLoop, cannot_be_entered_again_from_a_callback) {
  TypeParam reader;
  pass_typed(1);
  ASSERT_TRUE(becomes_readable(reader.fd()));
  std::vector<ErrorKind> refused;
  EXPECT_EQ(reader.read([&](int) { refused.push_back(reader.read([](int) {}).error().kind); }).value_or(0), 1U);
  EXPECT_THAT(refused, ElementsAre(ErrorKind::invalid_argument));
}

TYPED_TEST(EventLoop, is_woken_by_another_thread_until_it_has_answered) {
  TypeParam reader;
  std::vector<int> seen;
  const int fd = reader.fd();
  for (int i = 0; i < 3; ++i) {
    const std::jthread waker([&] { reader.wake(); });
    EXPECT_TRUE(becomes_readable(fd));
  }
  EXPECT_EQ(reader.read(this->into(seen)).value_or(1), 0U);
  EXPECT_FALSE(is_readable(fd)) << "one answer to all";
  EXPECT_THAT(seen, IsEmpty());
}

TYPED_TEST(EventLoop, is_woken_by_a_signal_handler) {
  TypeParam reader;
  static const TypeParam* woken;
  woken = &reader;
  const int fd = reader.fd();
  auto* before = std::signal(SIGUSR1, [](int) { woken->wake(); });
  ASSERT_EQ(std::raise(SIGUSR1), 0);
  std::signal(SIGUSR1, before);
  EXPECT_TRUE(is_readable(fd));
}

TYPED_TEST(EventLoop, hears_of_the_rest_when_detached_and_of_no_more_when_that_is_read) {
  TypeParam reader;
  std::vector<int> seen;
  pass_typed(2);
  reader.detach();
  pass_typed(1, 2);
  EXPECT_TRUE(becomes_readable(reader.fd()));
  EXPECT_EQ(reader.read(this->into(seen)).value_or(0), 2U);
  EXPECT_FALSE(is_readable(reader.fd()));
  EXPECT_THAT(seen, ElementsAre(0, 1));
  reader.wake();
  EXPECT_TRUE(is_readable(reader.fd()));
}

// A wake-up that is lost leaves the loop asleep on hits: with bursts and pauses of all lengths, and a limit that leaves
// some, every gap between "nothing there" and "asleep" is met.
TYPED_TEST(EventLoop, sleeps_through_no_hit) {
  constexpr int total = 30'000;
  TypeParam reader;
  const int loop = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  ASSERT_EQ(::epoll_ctl(loop, EPOLL_CTL_ADD, reader.fd(), &wanted), 0);
  const std::jthread passer([] {
    for (int i = 0; i < total; ++i) {
      pass_typed(1, i);
      for (int spin = (i * 7919) % 5000; i % 3 == 0 && spin > 0; --spin) asm volatile("");
    }
  });
  // Another thread of the loop looks at the descriptor meanwhile: what epoll finds empty it forgets.
  std::atomic<bool> done = false;
  const std::jthread looker([&, fd = reader.fd()] {
    while (!done) is_readable(fd);
  });
  int expected = 0;
  std::size_t limit = 1;
  while (expected < total) {
    epoll_event event{};
    if (::epoll_wait(loop, &event, 1, 5000) != 1) {
      ADD_FAILURE() << "asleep after " << expected << " of " << total;
      break;
    }
    limit = limit % 7 + 1;
    const auto handed = reader.read([&](int number) { EXPECT_EQ(number, expected++); }, limit);
    ASSERT_TRUE(handed) << handed.error().message;
  }
  done = true;
  EXPECT_FALSE(is_readable(reader.fd()));
  ::close(loop);
}

class TracerInAnEventLoop : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "not root";
  }
};

TEST_F(TracerInAnEventLoop, hears_of_nothing_once_drained) {
  Tracer tracer = or_throw(Tracer::start(test::plan_own_typed()));
  const int fd = or_throw(tracer.fd());
  EXPECT_EQ(or_throw(tracer.fd()), fd);
  pass_typed(3);
  EXPECT_TRUE(becomes_readable(fd));
  tracer.detach();
  tracer.drain(nullptr);
  EXPECT_FALSE(is_readable(fd));
  EXPECT_EQ(tracer.counts().front().discarded, 3U);
}

TEST_F(TracerInAnEventLoop, may_wait_now_and_then) {
  Tracer tracer = or_throw(Tracer::start(test::plan_own_typed()));
  const int fd = or_throw(tracer.fd());
  tracer.wake();
  EXPECT_EQ(tracer.poll([](const Event&) {}, 60s).value_or(1), 0U) << "a wake() before the wait ends it";
  EXPECT_EQ(tracer.poll([](const Event&) {}, 50ms).value_or(1), 0U);
  EXPECT_FALSE(is_readable(fd));
  pass_typed(1);
  EXPECT_TRUE(becomes_readable(fd));
  EXPECT_EQ(tracer.poll([](const Event&) {}, 60s).value_or(0), 1U);
  EXPECT_FALSE(is_readable(fd));
}

TEST_F(TracerInAnEventLoop, takes_events_that_outlive_tracer_and_ring) {
  std::vector<OwnedEvent> kept;
  {
    Tracer tracer = or_throw(Tracer::start(test::plan_own_typed(77)));
    pass_typed(3);
    kept = or_throw(tracer.take(1s, 2));
    EXPECT_EQ(kept.size(), 2U);
    for (OwnedEvent& event : or_throw(tracer.take(1s))) kept.push_back(std::move(event));
    tracer.detach();
    EXPECT_EQ(tracer.counts().front().delivered, 3U);
  }
  ASSERT_EQ(kept.size(), 3U);
  for (int i = 0; i < 3; ++i) {
    const Event& event = *kept[static_cast<std::size_t>(i)];
    EXPECT_EQ(event.arg<int>(1).value_or(-1), i);
    EXPECT_EQ(event.text(0)->bytes, "text");
    EXPECT_EQ(event.probe().name, "typed");
    EXPECT_EQ(event.user_cookie(), 77U);
  }
}

TEST_F(TracerInAnEventLoop, reads_no_map_that_is_no_ring) {
  const auto loaded = or_throw(or_throw(BpfObject::open(numbers_object())).load(test::plan_own_typed()));
  EXPECT_EQ(RingReader::open(loaded, "letters").error().kind, ErrorKind::not_found);
  EXPECT_EQ(RingReader::open(loaded, "usdt_specs").error().kind, ErrorKind::invalid_argument);
  const int fd = ::dup(*loaded.map_fd("numbers"));
  auto ring = RingReader::open(fd);
  ASSERT_TRUE(ring) << ring.error().message;
  ::close(fd);
  EXPECT_EQ(ring->read([](auto) {}).value_or(1), 0U) << "the ring is the reader's, too";
}

}  // namespace
}  // namespace usdt
