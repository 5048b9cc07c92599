// SPDX-License-Identifier: BSD-2-Clause
#include "proc/walk.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support.hpp"

namespace usdt::proc {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kElf =
    "\x7f"
    "ELF\x02\x01\x01";
constexpr std::string_view kArchive = "!<arch>\nrest";

TEST(Walk, elf_files_and_archives_are_found_by_content_at_any_depth) {
  test::TempDir dir;
  const auto a = dir.write("a", kElf);
  const auto b = dir.write("deep/er/b.txt", kArchive);
  dir.write("script", "#!/bin/sh\n");
  dir.write("empty", "");
  dir.write("short",
            "\x7f"
            "EL");
  EXPECT_THAT(walk_directory(dir.path(), {}), ElementsAre(a, b));
}

TEST(Walk, each_inode_is_one_file_under_its_own_name) {
  test::TempDir dir;
  const auto file = dir.write("lib/z.so.1", kElf);
  fs::create_symlink(file, dir.path() / "a.so");
  fs::create_hard_link(file, dir.path() / "lib/zz.so");
  const auto found = walk_directory(dir.path(), {});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].parent_path(), dir.path() / "lib") << "a link's name was preferred to the file's";
}

TEST(Walk, a_link_to_a_file_elsewhere_counts_and_a_link_to_a_directory_does_not) {
  test::TempDir dir, elsewhere;
  fs::create_symlink(elsewhere.write("prog", kElf), dir.path() / "prog");
  elsewhere.write("sub/hidden", kElf);
  fs::create_directory_symlink(elsewhere.path() / "sub", dir.path() / "sub");
  fs::create_directory_symlink(dir.path(), dir.path() / "loop");
  fs::create_symlink("nowhere", dir.path() / "dangling");
  EXPECT_THAT(walk_directory(dir.path(), {}), ElementsAre(dir.path() / "prog"));
}

TEST(Walk, a_fifo_does_not_block_it) {
  test::TempDir dir;
  ASSERT_EQ(::mkfifo((dir.path() / "fifo").c_str(), 0600), 0);
  const auto file = dir.write("file", kElf);
  EXPECT_THAT(walk_directory(dir.path(), {}), ElementsAre(file));
}

TEST(Walk, unreadable_entries_do_not_end_it) {
  test::TempDir dir;
  ASSERT_EQ(::chmod(dir.path().c_str(), 0755), 0);
  fs::permissions(dir.write("closed/in", kElf).parent_path(), fs::perms::none);
  fs::permissions(dir.write("secret", kElf), fs::perms::none);
  const auto file = dir.write("z-file", kElf);
  const pid_t looker = ::fork();
  if (looker == 0) {
    // Root reads everything, so it looks as nobody.
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(2);
    ::_exit(walk_directory(dir.path(), {}) == std::vector{file} ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(looker, &status, 0), looker);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: other files were found, 2: could not change user";
  fs::permissions(dir.path() / "closed", fs::perms::owner_all);
}

TEST(Walk, progress_counts_files) {
  test::TempDir dir;
  dir.write("a", kElf);
  dir.write("b/c", "text");
  std::vector<std::size_t> seen;
  (void)walk_directory(dir.path(), [&](std::size_t n) { seen.push_back(n); });
  EXPECT_THAT(seen, ElementsAre(1U, 2U));
}

TEST(Walk, a_directory_that_is_not_there_has_no_files) { EXPECT_THAT(walk_directory("/no/such/place", {}), IsEmpty()); }

}  // namespace
}  // namespace usdt::proc
