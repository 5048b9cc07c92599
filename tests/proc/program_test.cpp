// SPDX-License-Identifier: BSD-2-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "proc/script.hpp"
#include "support.hpp"
#include "usdt/discover.hpp"

namespace usdt {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

bool has_file(const std::vector<TargetFile>& files, std::string_view name_start) {
  return std::ranges::any_of(files,
                             [&](const TargetFile& f) { return f.path.filename().string().starts_with(name_start); });
}

fs::path script(const test::TempDir& dir, const std::string& name, const std::string& text) {
  const fs::path path = dir.write(name, text);
  fs::permissions(path, fs::perms::owner_all);
  return path;
}

TEST(FilesOfProgram, the_program_comes_first_then_its_loader_and_libraries) {
  const auto files = files_of_program(PROC_SLEEPER);
  ASSERT_TRUE(files) << files.error().message;
  EXPECT_EQ(files->front().path, PROC_SLEEPER);
  EXPECT_TRUE(has_file(*files, "libc.so"));
  EXPECT_TRUE(has_file(*files, "ld-linux"));
}

TEST(FilesOfProgram, libraries_that_the_environment_preloads_are_among_them) {
  const auto libc = find_library("libc.so.6");
  ASSERT_TRUE(libc);
  test::TempDir dir;
  dir.copy(*libc, "libfirst.so");
  dir.copy(*libc, "libsecond.so");
  const test::ScopedEnv found("LD_LIBRARY_PATH", dir.path().string());
  const test::ScopedEnv env("LD_PRELOAD", (dir.path() / "libfirst.so").string() + " libsecond.so:no-such.so ");
  const auto files = files_of_program(PROC_SLEEPER);
  ASSERT_TRUE(files) << files.error().message;
  EXPECT_EQ(files->front().path, PROC_SLEEPER);
  EXPECT_TRUE(has_file(*files, "libfirst.so"));
  EXPECT_TRUE(has_file(*files, "libsecond.so"));
  EXPECT_FALSE(has_file(*files, "no-such.so"));
}

TEST(FilesOfProgram, every_file_is_listed_once) {
  const auto files = files_of_program("/proc/self/exe");
  ASSERT_TRUE(files) << files.error().message;
  for (std::size_t i = 0; i < files->size(); ++i) {
    for (std::size_t j = i + 1; j < files->size(); ++j) {
      EXPECT_FALSE(fs::equivalent((*files)[i].path, (*files)[j].path)) << (*files)[i].path;
    }
  }
  EXPECT_TRUE(has_file(*files, "libstdc++.so"));
}

TEST(FilesOfProgram, a_script_stands_for_its_interpreter) {
  test::TempDir dir;
  const auto files = files_of_program(script(dir, "s", "#! " PROC_SLEEPER " -x\nbody\n"));
  ASSERT_TRUE(files) << files.error().message;
  EXPECT_EQ(files->front().path, PROC_SLEEPER);
}

TEST(FilesOfProgram, env_looks_the_program_up_on_path) {
  test::TempDir dir;
  dir.copy(PROC_SLEEPER, "sleeper-of-test");
  const test::ScopedEnv env("PATH", dir.path().string());
  const auto files = files_of_program(script(dir, "s", "#!/usr/bin/env -S A=1 sleeper-of-test -x\n"));
  ASSERT_TRUE(files) << files.error().message;
  EXPECT_EQ(files->front().path, dir.path() / "sleeper-of-test");
}

TEST(FilesOfProgram, a_script_that_names_itself_is_a_limit) {
  test::TempDir dir;
  const auto files = files_of_program(script(dir, "loop", "#!" + (dir.path() / "loop").string() + "\n"));
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().kind, ErrorKind::limit);
}

TEST(FilesOfProgram, what_is_missing_or_no_program_is_named) {
  test::TempDir dir;
  const auto missing = files_of_program("/no/such/program");
  EXPECT_EQ(missing.error().kind, ErrorKind::not_found);
  EXPECT_THAT(missing.error().message, HasSubstr("/no/such/program"));
  const auto text = dir.write("text", "hello");
  EXPECT_THAT(files_of_program(text).error().message, HasSubstr(text.string()));
  EXPECT_EQ(files_of_program(script(dir, "bare", "#!\n")).error().kind, ErrorKind::malformed);
}

TEST(ScriptLine, blanks_and_line_ends_do_not_matter) {
  EXPECT_EQ(proc::program_of_script_line("  /bin/sh -e"), "/bin/sh");
  EXPECT_EQ(proc::program_of_script_line("\t/bin/sh\r"), "/bin/sh");
  EXPECT_EQ(proc::program_of_script_line("/usr/bin/env python3"), "python3");
  EXPECT_EQ(proc::program_of_script_line("/usr/bin/env"), "/usr/bin/env");
  EXPECT_EQ(proc::program_of_script_line("   "), "");
}

}  // namespace
}  // namespace usdt
