// SPDX-License-Identifier: BSD-2-Clause
#include "elf/debug_package.hpp"

#include <gtest/gtest.h>

#include "toolchain.hpp"

namespace usdt::elf {
namespace {

namespace fs = std::filesystem;

/// A directory of dpkg's lists.
class Lists : public testing::Test {
 protected:
  void list(const std::string& package, const std::string& text) const { (void)dir_.write(package, text); }
  [[nodiscard]] std::string owner(const std::string& path) const { return package_of(path, dir_.path()); }
  test::TempDir dir_;
};

TEST_F(Lists, name_the_package_of_a_file_without_its_architecture) {
  list("libpq5:amd64.list", "/.\n/usr\n/usr/lib/nosuch/libpq.so.5.15\n");
  list("other.list", "/usr/lib/nosuch/libpq.so.5.150\n/usr/lib/nosuch/libpq.so.5\n");
  EXPECT_EQ(owner("/usr/lib/nosuch/libpq.so.5.15"), "libpq5");
  EXPECT_EQ(owner("/usr/lib/nosuch/libpq.so.5"), "other");
}

TEST_F(Lists, know_a_file_by_its_name_before_lib_became_a_link) {
  list("libc6:amd64.list", "/lib/nosuch/libc.so.6\n");
  EXPECT_EQ(owner("/usr/lib/nosuch/libc.so.6"), "libc6");
}

TEST_F(Lists, say_nothing_of_other_files) {
  list("a.list", "/usr/lib/nosuch/a\n/home/me/a\n/usr/local/bin/a\n/usr/lib/nosuch/ab");
  list("a.md5sums", "/usr/lib/nosuch/b\n");
  for (const char* path : {"/usr/lib/nosuch/b", "/home/me/a", "/usr/local/bin/a", "/usr/lib/nosuch", "/lib/nosuch/a\n"})
    EXPECT_EQ(owner(path), "") << path;
  EXPECT_EQ(owner("/usr/lib/nosuch/ab"), "a");
  EXPECT_EQ(package_of("/usr/lib/nosuch/a", dir_.path() / "none"), "");
}

TEST(DebugPackage, of_an_installed_program_is_what_dpkg_says) {
  if (!fs::exists("/usr/bin/dpkg") || !fs::exists("/usr/bin/gcc")) GTEST_SKIP() << "no dpkg, or no gcc";
  const std::string gcc = fs::canonical("/usr/bin/gcc").string();
  const test::TempDir dir;
  const test::CommandResult said = test::run_in(dir, "dpkg -S " + gcc);
  if (said.status != 0) GTEST_SKIP() << "gcc is of no package";
  EXPECT_EQ(package_of(gcc), said.output.substr(0, said.output.find(':')));
}

TEST(DebugPackage, is_told_with_the_build_id) {
  EXPECT_EQ(where_symbols_are("libc6", "12ab"), "package libc6-dbgsym or libc6-dbg brings its symbols (build id 12ab)");
  EXPECT_EQ(where_symbols_are("libc6", ""), "package libc6-dbgsym or libc6-dbg brings its symbols");
  EXPECT_EQ(where_symbols_are("", "12ab"), "");
}

}  // namespace
}  // namespace usdt::elf
