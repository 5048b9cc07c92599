// SPDX-License-Identifier: BSD-2-Clause
#include "io/replaced_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace usdt::io {
namespace {

namespace fs = std::filesystem;

class ReplacedFileTest : public ::testing::Test {
 protected:
  ReplacedFileTest() { fs::create_directory(directory_), std::ofstream(file_) << "before"; }
  ~ReplacedFileTest() override { fs::remove_all(directory_); }

  [[nodiscard]] std::string text() const {
    std::ifstream stream(file_);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  fs::path directory_ = fs::path(::testing::TempDir()) / ("replaced_file_test." + std::to_string(::getpid()));
  fs::path file_ = directory_ / "page";
};

TEST_F(ReplacedFileTest, has_the_whole_text_or_the_one_before_at_any_moment) {
  const ReplacedFile replaced(file_);
  std::atomic<bool> over = false;
  std::atomic<int> seen = 0;
  std::thread reader([&] {
    while (!over) {
      const std::string now = text();
      ASSERT_TRUE(now == "before" || (now.size() == 100'000 && now == std::string(100'000, now[0]))) << now.size();
      ++seen;
    }
  });
  for (int n = 0; n < 200 || seen < 50; ++n)
    ASSERT_TRUE(replaced.replace(std::string(100'000, static_cast<char>('a' + n % 26))));
  over = true;
  reader.join();
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), {}), 1) << "nothing else is left";
}

TEST_F(ReplacedFileTest, keeps_its_rights_and_is_found_through_links) {
  fs::permissions(file_, fs::perms(0640));
  fs::create_symlink(file_, directory_ / "link");
  ASSERT_TRUE(ReplacedFile(directory_ / "link").replace("after"));
  EXPECT_EQ(text(), "after");
  EXPECT_EQ(fs::status(file_).permissions(), fs::perms(0640));
  EXPECT_TRUE(fs::is_symlink(directory_ / "link"));
}

TEST_F(ReplacedFileTest, stays_what_it_was_where_nothing_can_be_written) {
  const ReplacedFile replaced(file_);
  fs::remove_all(directory_);
  EXPECT_FALSE(replaced.replace("after"));
  EXPECT_FALSE(fs::exists(file_));
}

}  // namespace
}  // namespace usdt::io
