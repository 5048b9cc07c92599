// SPDX-License-Identifier: BSD-2-Clause
#include "io/stream.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <thread>
#include <utility>

namespace usdt::io {
namespace {

using Flushed = Stream::Flushed;
using std::chrono::milliseconds;

bool never(milliseconds) { return false; }

int last_words = 0;

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0); }
  ~Pipe() {
    for (const int fd : ends)
      if (fd >= 0) ::close(fd);
  }
  std::string read_all() {
    std::string all;
    char block[4096];
    for (ssize_t n = 0; (n = ::read(ends[0], block, sizeof(block))) > 0;)
      all.append(block, static_cast<std::size_t>(n));
    return all;
  }
  std::array<int, 2> ends{-1, -1};
};

TEST(Stream, text_among_the_parts_is_made_safe_and_the_format_is_ours) {
  Pipe pipe;
  {
    Stream out(pipe.ends[1]);
    out.print("{:<5}|{}|{:>6}\n", "\n", 7, std::string("\xc2\x9b"));
    out.json("{\"a\":\"\x7f\"}");
    EXPECT_EQ(out.flush(), Flushed::all);
  }
  ::close(std::exchange(pipe.ends[1], -1));
  EXPECT_EQ(pipe.read_all(), "\\n   |7|\\u009b\n{\"a\":\"\\u007f\"}\n");
}

TEST(Stream, an_exact_one_has_true_text_in_its_cells) {
  Pipe pipe;
  {
    Stream out(pipe.ends[1]);
    out.be_exact();
    for (const std::string_view text : {"a\nb", "a\\nb", "say \"\x1b\"\n", "\xff"}) {
      const std::uint64_t at = out.printed();
      out.print("{}", unambiguous(text));
      out.make_cell(at);
      out.print(",{}\n", std::string("\t"));
    }
    EXPECT_EQ(out.flush(), Flushed::all);
  }
  ::close(std::exchange(pipe.ends[1], -1));
  EXPECT_EQ(pipe.read_all(),
            "\"a\nb\",\t\na\\nb,\t\n\"say \"\"\x1b\"\"\n\",\t\n\xef\xbf\xbd"
            "ff,\t\n");
}

TEST(Stream, a_value_has_two_backslashes_for_one) {
  Pipe pipe;
  {
    Stream out(pipe.ends[1]);
    out.print("{:<6}|{}\n", unambiguous("\\n"), std::string("\\n"));
    EXPECT_EQ(out.flush(), Flushed::all);
  }
  ::close(std::exchange(pipe.ends[1], -1));
  EXPECT_EQ(pipe.read_all(), "\\\\n   |\\n\n");
}

TEST(Stream, a_full_pipe_is_waited_for_only_as_long_as_patience_lasts_and_gets_whole_lines) {
  Pipe pipe;
  std::uint64_t written = 0;
  {
    Stream out(pipe.ends[1]);
    for (int i = 0; i < 5000; ++i) out.print("line {:>50}\n", i);
    EXPECT_EQ(out.flush(never), Flushed::waiting);
    EXPECT_EQ(out.error(), 0);
    EXPECT_EQ(out.printed(), 5000U * 56);
    written = out.written();
    EXPECT_GT(written, 0U);
    EXPECT_EQ(out.flush([](milliseconds stalled) { return stalled < milliseconds(120); }), Flushed::waiting);
    EXPECT_EQ(out.written(), written);
  }
  ::close(std::exchange(pipe.ends[1], -1));
  const std::string text = pipe.read_all();
  EXPECT_EQ(text.size(), written);
  EXPECT_EQ(text.size() % 56, 0U);
}

TEST(Stream, a_slow_reader_gets_everything_and_the_shared_descriptor_stays_as_it_was) {
  Pipe pipe;
  const int flags = ::fcntl(pipe.ends[1], F_GETFL);
  std::string text;
  std::thread reader;
  {
    Stream out(pipe.ends[1]);
    EXPECT_EQ(::fcntl(pipe.ends[1], F_GETFL), flags);
    for (int i = 0; i < 5000; ++i) out.print("line {:>50}\n", i);
    reader = std::thread([&] {
      std::this_thread::sleep_for(milliseconds(200));
      text = pipe.read_all();
    });
    EXPECT_EQ(out.flush(), Flushed::all);
  }
  ::close(std::exchange(pipe.ends[1], -1));
  reader.join();
  EXPECT_EQ(text.size(), 5000U * 56);
}

TEST(Stream, a_socket_whose_reader_sleeps_is_not_waited_for_either) {
  Pipe pair;
  for (int& fd : pair.ends) ::close(std::exchange(fd, -1));
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.ends.data()), 0);
  Stream out(pair.ends[1]);
  for (int i = 0; i < 100'000; ++i) out.print("line {:>50}\n", i);
  EXPECT_EQ(out.flush(never), Flushed::waiting);
}

TEST(Stream, a_failed_write_is_remembered_with_what_was_written_before) {
  Stream out(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  out.print("x\n");
  EXPECT_EQ(out.flush(), Flushed::failed);
  EXPECT_EQ(out.error(), ENOSPC);
  EXPECT_EQ(out.written(), 0U);
  Stream closed(-1);
  closed.print("x\n");
  EXPECT_EQ(closed.flush(), Flushed::failed);
  EXPECT_EQ(closed.error(), EBADF);
}

TEST(Stream, a_line_can_be_broken_before_its_last_part) {
  Pipe pipe;
  {
    Stream out(pipe.ends[1]);
    out.print("first");
    EXPECT_EQ(out.flush(), Flushed::all);
    out.print(" second");
    const std::uint64_t mark = out.printed();
    out.print(" third\n");
    out.break_line(mark);
    EXPECT_EQ(out.flush(), Flushed::all);
  }
  ::close(std::exchange(pipe.ends[1], -1));
  EXPECT_EQ(pipe.read_all(), "first second\n    third\n");
}

/// glibc ends a thread by an exception of its own, and aborts the process where one is caught and stays so.
TEST(Stream, a_thread_may_end_in_the_function_that_takes_what_is_written) {
  void* result = nullptr;
  const auto write = [](void*) -> void* {
    bool first = true;
    Stream out([&first](std::string_view) {
      if (std::exchange(first, false)) ::pthread_exit(&last_words);
      return true;
    });
    out.print("x\n");
    static_cast<void>(out.flush());
    return nullptr;
  };
  pthread_t thread;
  ASSERT_EQ(::pthread_create(&thread, nullptr, write, nullptr), 0);
  ASSERT_EQ(::pthread_join(thread, &result), 0);
  EXPECT_EQ(result, &last_words);
}

}  // namespace
}  // namespace usdt::io
