// SPDX-License-Identifier: BSD-2-Clause
#include "sys/read.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "sys/regular_file.hpp"

namespace usdt::sys {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class Reading : public testing::Test {
 protected:
  Reading() {
    std::string name = (fs::temp_directory_path() / "read_test.XXXXXX").string();
    dir_ = ::mkdtemp(name.data());
  }
  ~Reading() override { fs::remove_all(dir_); }
  std::string write(const std::string& text) const {
    std::ofstream(dir_ / "file") << text;
    return dir_ / "file";
  }
  fs::path dir_;
};

TEST_F(Reading, takes_all_of_a_file_that_has_no_size) {
  EXPECT_THAT(read_text("/proc/self/status", 1 << 16).value(), StartsWith("Name:\t"));
  std::string all;
  std::getline(std::ifstream("/proc/self/stat"), all, '\0');
  EXPECT_EQ(read_text("/proc/self/stat", 4096).value().substr(0, 10), all.substr(0, 10));
}
TEST_F(Reading, takes_no_more_than_it_is_told) {
  EXPECT_EQ(read_text("/dev/zero", 100'000).value(), std::string(100'000, '\0'));
  const std::string file = write(std::string(70'000, 'x'));
  for (const std::size_t most : {1U, 16384U, 16385U, 69'999U, 70'000U})
    EXPECT_EQ(read_text(file, most).value().size(), most);
  EXPECT_EQ(read_text(file, 1 << 20).value(), std::string(70'000, 'x'));
  EXPECT_EQ(read_text(write(""), 10).value(), "");
}
TEST_F(Reading, keeps_the_errno_and_names_the_file) {
  const auto missing = read_text(dir_ / "missing", 10);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::not_found);
  EXPECT_EQ(missing.error().os_error, ENOENT);
  EXPECT_THAT(missing.error().message, HasSubstr((dir_ / "missing").string()));
  EXPECT_EQ(read_text(dir_, 10).error().os_error, EISDIR);
}
TEST_F(Reading, at_an_offset_ends_where_the_file_does) {
  const int fd = ::open(write("0123456789").c_str(), O_RDONLY | O_CLOEXEC);
  std::array<std::byte, 6> room{};
  EXPECT_EQ(read_at(fd, 2, room), 6U);
  EXPECT_EQ(room[0], std::byte{'2'});
  EXPECT_EQ(read_at(fd, 7, room), 3U);
  EXPECT_EQ(read_at(fd, 10, room), 0U);
  ::close(fd);
  EXPECT_EQ(read_at(fd, 0, room), 0U) << "closed";
}

TEST_F(Reading, takes_all_of_a_regular_file_or_none_of_it) {
  const std::string file = write(std::string(70'000, 'x'));
  EXPECT_EQ(read_regular(file, 70'000).value(), std::vector(70'000, std::byte{'x'}));
  EXPECT_EQ(read_regular(file, 69'999).error().kind, ErrorKind::limit);
  EXPECT_EQ(read_regular(dir_ / "missing", 1).error().kind, ErrorKind::not_found);
  EXPECT_THAT(read_regular(dir_, 1).error().message, EndsWith(": a directory, not a regular file"));
  EXPECT_THAT(read_regular("/dev/zero", 1).error().message, StartsWith("/dev/zero: a character device"));
}

/// A timer's signals, which interrupt system calls.
TEST_F(Reading, goes_on_after_a_signal) {
  ASSERT_EQ(::mkfifo((dir_ / "fifo").c_str(), 0600), 0);
  static int signals;
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) { ++signals; };  // without SA_RESTART
  ::sigaction(SIGALRM, &action, &before);
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  ::pthread_sigmask(SIG_BLOCK, &alarm, nullptr);  // of the writer, which inherits it
  std::thread writer([&] {
    std::ofstream out(dir_ / "fifo");
    for (const char* word : {"one ", "two ", "three"}) {
      ::usleep(30'000);
      out << word << std::flush;
    }
  });
  const int keeps_it_open = ::open((dir_ / "fifo").c_str(), O_RDONLY | O_CLOEXEC);  // waits for the writer, unsignalled
  ::pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
  const itimerval often{{0, 2000}, {0, 2000}};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  const auto text = read_text(dir_ / "fifo", 100);
  const itimerval never{};
  ::setitimer(ITIMER_REAL, &never, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
  writer.join();
  ::close(keeps_it_open);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, "one two three");
  EXPECT_GT(signals, 5);
}

}  // namespace
}  // namespace usdt::sys
