// SPDX-License-Identifier: BSD-2-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support.hpp"
#include "usdt/discover.hpp"

namespace usdt {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::string_view kElf =
    "\x7f"
    "ELF\x02\x01\x01";

std::vector<fs::path> paths(const Result<std::vector<TargetFile>>& files) {
  std::vector<fs::path> out;
  EXPECT_TRUE(files) << files.error().message;
  for (const TargetFile& file : files.value_or(std::vector<TargetFile>{})) out.push_back(file.path);
  return out;
}

TEST(ResolveTarget, a_path_is_taken_as_it_is_whatever_it_holds) {
  test::TempDir dir;
  const auto text = dir.write("notes.txt", "hello");
  EXPECT_EQ(paths(resolve_target(text.string())), std::vector{text});
}

TEST(ResolveTarget, a_path_with_glob_characters_that_exists_means_itself) {
  test::TempDir dir;
  const auto odd = dir.write("lib[1]*.so", kElf);
  dir.write("lib1x.so", kElf);
  EXPECT_EQ(paths(resolve_target(odd.string())), std::vector{odd});
}

TEST(ResolveTarget, in_quotes_or_behind_a_backslash_a_glob_character_is_itself) {
  test::TempDir dir;
  const auto star = dir.write("a*", kElf);
  const auto quoted = dir.write("a\\*", kElf);
  dir.write("ab", kElf);
  EXPECT_EQ(paths(resolve_target("\"" + star.string() + "\"")), std::vector{star});
  EXPECT_EQ(paths(resolve_target("\"" + dir.path().string() + "/a\\\\*\"")), std::vector{quoted});
  fs::remove(quoted);
  EXPECT_EQ(paths(resolve_target(quoted.string())), std::vector{star});
  EXPECT_EQ(resolve_target("\"" + (dir.path() / "*").string() + "\"").error().kind, ErrorKind::not_found);
}

TEST(ResolveTarget, a_star_is_what_runs_and_not_the_directory_one_is_in) {
  test::TempDir dir;
  dir.write("stray", kElf);
  const fs::path before = fs::current_path();
  fs::current_path(dir.path());
  const auto files = paths(resolve_target("*"));
  fs::current_path(before);
  EXPECT_THAT(files, testing::Contains(fs::canonical("/proc/self/exe")));
  EXPECT_THAT(files, testing::Not(testing::Contains(testing::Property(&fs::path::filename, "stray"))));
}

TEST(ResolveTarget, a_glob_names_elf_files_only) {
  test::TempDir dir;
  const auto a = dir.write("a.so", kElf);
  const auto b = dir.write("b.so", kElf);
  dir.write("c.so", "linker script");
  dir.write("d.so/inner", kElf);
  EXPECT_EQ(paths(resolve_target((dir.path() / "*.so").string())), (std::vector{a, b}));
  EXPECT_EQ(resolve_target((dir.path() / "*.none").string()).error().kind, ErrorKind::not_found);
}

TEST(ResolveTarget, a_directory_is_walked) {
  test::TempDir dir;
  const auto a = dir.write("x/a", kElf);
  EXPECT_EQ(paths(resolve_target(dir.path().string())), std::vector{a});
  EXPECT_THAT(paths(resolve_target((dir.path() / "x").string() + "/")), SizeIs(1));
}

TEST(ResolveTarget, a_name_is_a_library_or_a_program) {
  EXPECT_THAT(paths(resolve_target("libc.so.6")), SizeIs(1));
  test::TempDir dir;
  const auto program = dir.copy(PROC_SLEEPER, "sleeper-of-test");
  const test::ScopedEnv env("PATH", dir.path().string());
  EXPECT_EQ(paths(resolve_target("sleeper-of-test")), std::vector{program});
}

TEST(ResolveTarget, an_elf_program_is_preferred_to_a_wrapper_script_earlier_on_path) {
  test::TempDir dir;
  fs::permissions(dir.write("shims/sleeper-of-test", "#!/bin/sh\n"), fs::perms::owner_all);
  const auto program = dir.copy(PROC_SLEEPER, "bin/sleeper-of-test");
  const test::ScopedEnv env("PATH", (dir.path() / "shims").string() + ":" + (dir.path() / "bin").string());
  EXPECT_EQ(paths(resolve_target("sleeper-of-test")), std::vector{program});
}

TEST(ResolveTarget, what_fits_nothing_is_not_found_and_named) {
  for (const char* target : {"no-such-thing-at-all", "/no/such/path", "libno-such.so.7"}) {
    const auto files = resolve_target(target);
    ASSERT_FALSE(files) << target;
    EXPECT_EQ(files.error().kind, ErrorKind::not_found) << target;
    EXPECT_THAT(files.error().message, HasSubstr(target));
  }
  EXPECT_EQ(resolve_target("").error().kind, ErrorKind::invalid_argument);
}

TEST(ResolveTarget, a_link_that_leads_to_itself_is_said_to_be_one) {
  test::TempDir dir;
  ASSERT_EQ(::symlink("loop", (dir.path() / "loop").c_str()), 0);
  for (const std::string& path : {(dir.path() / "loop").string(), (dir.path() / "loop").string() + "/file"}) {
    const auto files = resolve_target(path);
    ASSERT_FALSE(files.has_value());
    EXPECT_EQ(files.error().os_error, ELOOP);
  }
  const auto here = fs::current_path();
  fs::current_path(dir.path());
  const auto files = resolve_target("loop");
  fs::current_path(here);
  ASSERT_FALSE(files.has_value());
  EXPECT_EQ(files.error().os_error, ELOOP) << files.error().message;
}

TEST(ResolveTarget, a_device_or_fifo_is_no_target) {
  test::TempDir dir;
  ASSERT_EQ(::mkfifo((dir.path() / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(resolve_target((dir.path() / "fifo").string()).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(resolve_target("/dev/null").error().kind, ErrorKind::invalid_argument);
}

TEST(TargetMeans, a_path_a_name_a_glob_and_a_soname_fit) {
  const TargetFile file{"/usr/lib/x/libpq.so.5.15", "/usr/lib/x/libpq.so.5.15"};
  for (const char* target : {"/usr/lib/x/libpq.so.5.15", "libpq.so.5.15", "libpq.so.5", "libpq.so", "libpq*",
                             "/usr/*/libpq.so*", "libpq", "pq"}) {
    EXPECT_TRUE(target_means(target, file)) << target;
  }
  for (const char* target : {"libp", "q", "/usr/lib/x/libpq.so", "/etc", "libpq.so.6", "libpq.so.5.1", "libpq.s"}) {
    EXPECT_FALSE(target_means(target, file)) << target;
  }
}

TEST(TargetMeans, quoted_text_has_no_globs) {
  const TargetFile star{"/x/lib*.so", "/x/lib*.so"};
  const TargetFile plain{"/x/libq.so", "/x/libq.so"};
  for (const char* target : {"\"/x/lib*.so\"", "\"lib*.so\"", "/x/lib\\*.so"}) {
    EXPECT_TRUE(target_means(target, star)) << target;
    EXPECT_FALSE(target_means(target, plain)) << target;
  }
  EXPECT_TRUE(target_means("*", plain));
}

TEST(TargetMeans, a_program_on_path_is_the_same_file) {
  test::TempDir dir;
  const auto program = dir.copy(PROC_SLEEPER, "sleeper-1.2");
  fs::create_symlink(program, dir.path() / "sleeper-of-test");
  const test::ScopedEnv env("PATH", dir.path().string());
  EXPECT_TRUE(target_means("sleeper-of-test", {program, program}));
  EXPECT_FALSE(target_means("sleeper-of-test", {"/bin/true", "/bin/true"}));
}

}  // namespace
}  // namespace usdt
