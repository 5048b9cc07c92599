// SPDX-License-Identifier: BSD-2-Clause
#include "http/spool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/http/temporary_spool.hpp"

namespace usdt::http {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SpooledBatch spooled(std::uint64_t events, std::string body) {
  return {.path = "/v1/logs?a=b", .type = "text/x", .events = events, .deflated = std::move(body)};
}

std::vector<std::string> files_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& each : fs::directory_iterator(directory)) names.push_back(each.path().filename());
  std::ranges::sort(names);
  return names;
}

TEST(Spool, gives_batches_back_in_their_order_and_whole) {
  const TemporaryDirectory directory;
  Spool spool = spool_at(directory.path());
  const std::string odd("\n\0binary\n", 9);
  ASSERT_TRUE(spool.put(spooled(5, odd)));
  ASSERT_TRUE(spool.put(spooled(7, "")));
  EXPECT_EQ(spool.events(), 12U);
  const auto first = spool.front();
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->deflated, odd);
  EXPECT_EQ(first->path + first->type, "/v1/logs?a=btext/x");
  EXPECT_EQ(first->events, 5U);
  spool.pop();
  EXPECT_EQ(spool.front()->events, 7U);
  spool.pop();
  EXPECT_TRUE(spool.is_empty());
  EXPECT_EQ(spool.bytes() + spool.events(), 0U);
  EXPECT_THAT(files_in(directory.path()), IsEmpty());
  EXPECT_EQ(spool.front().error().kind, ErrorKind::not_found);
  spool.pop();
}

TEST(Spool, finds_what_another_process_left_and_goes_on_behind_it) {
  const TemporaryDirectory directory;
  for (std::uint64_t n = 1; n <= 12; ++n) ASSERT_TRUE(spool_at(directory.path()).put(spooled(n, "x")));
  Spool spool = spool_at(directory.path());
  EXPECT_EQ(spool.batches(), 12U);
  EXPECT_EQ(spool.events(), 78U);
  for (std::uint64_t n = 1; n <= 12; ++n, spool.pop()) EXPECT_EQ(spool.front()->events, n);
}

TEST(Spool, leaves_files_alone_that_are_no_batches) {
  const TemporaryDirectory directory;
  for (const char* name :
       {"a", "1-2.batch", "00000000000000000001-2.batch.old", "-.batch", "18446744073709551615-1.batch"})
    std::ofstream(directory.path() + "/" + name) << "mine";
  fs::create_symlink("/etc/passwd", directory.path() + "/00000000000000000003-2.batch");
  const auto before = files_in(directory.path());
  Spool spool = spool_at(directory.path());
  EXPECT_TRUE(spool.is_empty());
  ASSERT_TRUE(spool.put(spooled(1, "x")));
  spool.pop();
  EXPECT_EQ(files_in(directory.path()), before);
}

TEST(Spool, says_that_a_file_was_damaged_and_goes_on) {
  const TemporaryDirectory directory;
  Spool spool = spool_at(directory.path());
  for (int n = 0; n < 4; ++n) ASSERT_TRUE(spool.put(spooled(1, "0123456789")));
  const auto files = files_in(directory.path());
  fs::resize_file(directory.path() + "/" + files[0], 30);
  std::ofstream(directory.path() + "/" + files[1]) << "";
  fs::remove(directory.path() + "/" + files[2]);
  for (const ErrorKind kind : {ErrorKind::malformed, ErrorKind::malformed, ErrorKind::not_found}) {
    EXPECT_EQ(spool.front().error().kind, kind) << spool.front().error().message;
    spool.pop();
  }
  EXPECT_EQ(spool.front()->deflated, "0123456789");
}

TEST(Spool, takes_no_more_than_it_has_room_for) {
  constexpr std::uint64_t most = 64 << 10;
  const TemporaryDirectory directory;
  Spool spool = spool_at(directory.path(), most);
  int taken = 0;
  Result<void> put;
  while ((put = spool.put(spooled(1, std::string(1000, 'x'))))) ++taken;
  EXPECT_EQ(taken, 16);
  EXPECT_EQ(put.error().kind, ErrorKind::limit);
  EXPECT_LE(spool.bytes(), most);
  std::uint64_t on_disk = 0;
  for (const auto& name : files_in(directory.path())) {
    struct stat st {};
    ASSERT_EQ(::stat((directory.path() + "/" + name).c_str(), &st), 0);
    on_disk += static_cast<std::uint64_t>(st.st_blocks) * 512;
  }
  EXPECT_LE(on_disk, most) << "what du counts";
  spool.pop();
  EXPECT_TRUE(spool.put(spooled(1, std::string(1000, 'x'))));
}

TEST(Spool, leaves_nothing_of_a_batch_that_the_disk_does_not_take) {
  const TemporaryDirectory directory;
  Spool spool = spool_at(directory.path());
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 500, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const auto put = spool.put(spooled(3, std::string(1000, 'x')));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(put);
  EXPECT_THAT(put.error().message, HasSubstr("File too large"));
  EXPECT_THAT(files_in(directory.path()), IsEmpty());
  EXPECT_TRUE(spool.is_empty());
}

TEST(Spool, is_for_one_process_and_for_its_owner) {
  const TemporaryDirectory directory;
  const std::string inner = directory.path() + "/inner";
  const Spool spool = spool_at(inner);
  EXPECT_EQ(Spool::open(inner, 1).error().kind, ErrorKind::limit);
  struct stat st {};
  ASSERT_EQ(::stat(inner.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0700U);
  EXPECT_EQ(Spool::open(directory.path() + "/no/such", 1).error().kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace usdt::http
