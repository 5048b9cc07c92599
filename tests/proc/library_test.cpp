// SPDX-License-Identifier: BSD-2-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proc/library_search.hpp"
#include "support.hpp"
#include "usdt/discover.hpp"

namespace usdt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The first bytes of an ELF file of that ident; enough for the loader's choice.
std::string elf_head(const proc::ElfIdent& ident) {
  std::string head(64, '\0');
  head.replace(0, 4,
               "\x7f"
               "ELF");
  head[4] = static_cast<char>(ident.elf_class);
  head[5] = static_cast<char>(ident.data);
  head[18] = static_cast<char>(ident.machine & 0xff);
  head[19] = static_cast<char>(ident.machine >> 8);
  return head;
}

proc::LibrarySearch search_in(std::vector<std::string> environment, std::vector<std::string> defaults) {
  return proc::LibrarySearch(
      {.environment = std::move(environment), .cache_file = "/none", .defaults = std::move(defaults)});
}

TEST(SplitPath, an_empty_item_is_the_current_directory) {
  EXPECT_THAT(proc::split_path("/a:/b"), ElementsAre("/a", "/b"));
  EXPECT_THAT(proc::split_path(":/b:"), ElementsAre(".", "/b", "."));
  EXPECT_THAT(proc::split_path("/a;/b:/c", true), ElementsAre("/a", "/b", "/c"));
  EXPECT_THAT(proc::split_path(""), ElementsAre());
}

TEST(VersionLess, numbers_count_as_numbers) {
  EXPECT_TRUE(proc::version_less("libx.so.9", "libx.so.10"));
  EXPECT_FALSE(proc::version_less("libx.so.10", "libx.so.9"));
  EXPECT_TRUE(proc::version_less("libx.so", "libx.so.1"));
  EXPECT_FALSE(proc::version_less("libx.so.1", "libx.so.1"));
}

TEST(LibrarySearch, a_library_of_another_class_or_a_linker_script_is_passed_over) {
  test::TempDir dir;
  proc::ElfIdent other = proc::host_ident();
  other.machine = 0x28;
  dir.write("one/libx.so", "/* GNU ld script */");
  dir.write("two/libx.so", elf_head(other));
  const auto wanted = dir.write("three/libx.so", elf_head(proc::host_ident()));
  const auto base = dir.path().string();
  const auto search = search_in({base + "/one", base + "/two", base + "/three"}, {});
  EXPECT_EQ(search.find("libx.so", proc::host_ident()), wanted);
  EXPECT_EQ(search.find("libx.so", other), dir.path() / "two/libx.so");
  EXPECT_EQ(search.find("liby.so", other), std::nullopt);
}

TEST(LibrarySearch, places_are_tried_in_the_loaders_order) {
  test::TempDir dir;
  const auto base = dir.path().string();
  for (const char* place : {"rpath", "env", "runpath", "default"}) {
    dir.write(std::string(place) + "/libx.so", elf_head(proc::host_ident()));
  }
  const std::vector<std::string> rpath = {base + "/rpath"}, runpath = {base + "/runpath"};
  const auto search = search_in({base + "/env"}, {base + "/default"});
  EXPECT_EQ(search.find("libx.so", proc::host_ident(), rpath, runpath), dir.path() / "rpath/libx.so");
  EXPECT_EQ(search.find("libx.so", proc::host_ident(), {}, runpath), dir.path() / "env/libx.so");
  const auto bare = search_in({}, {base + "/default"});
  EXPECT_EQ(bare.find("libx.so", proc::host_ident(), {}, runpath), dir.path() / "runpath/libx.so");
  EXPECT_EQ(bare.find("libx.so", proc::host_ident()), dir.path() / "default/libx.so");
}

TEST(LibrarySearch, the_newest_version_answers_for_a_stem) {
  test::TempDir dir;
  for (const char* name : {"libx.so", "libx.so.9", "libx.so.10", "libxy.so.99"}) {
    dir.write(name, elf_head(proc::host_ident()));
  }
  const auto search = search_in({}, {dir.path().string()});
  EXPECT_EQ(search.find_version("libx.so", proc::host_ident()), dir.path() / "libx.so.10");
}

TEST(FindLibrary, the_c_library_is_found_by_soname_and_by_short_name) {
  const auto by_soname = find_library("libc.so.6");
  ASSERT_TRUE(by_soname) << by_soname.error().message;
  for (const char* name : {"libc", "c", "libc.so"}) {
    const auto path = find_library(name);
    ASSERT_TRUE(path) << name << ": " << path.error().message;
    EXPECT_TRUE(std::filesystem::equivalent(*path, *by_soname)) << name << " -> " << path->string();
  }
}

TEST(FindLibrary, ld_library_path_goes_first) {
  test::TempDir dir;
  const auto libc = find_library("libc.so.6");
  ASSERT_TRUE(libc);
  const auto copy = dir.copy(*libc, "libc.so.6");
  const test::ScopedEnv env("LD_LIBRARY_PATH", dir.path().string());
  EXPECT_EQ(*find_library("libc.so.6"), copy);
}

TEST(FindLibrary, an_unknown_name_says_where_it_looked) {
  const auto path = find_library("libno-such-thing.so.1");
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().kind, ErrorKind::not_found);
  EXPECT_THAT(path.error().message, HasSubstr("libno-such-thing.so.1"));
  EXPECT_THAT(path.error().message, HasSubstr("/etc/ld.so.cache"));
  EXPECT_EQ(find_library("").error().kind, ErrorKind::invalid_argument);
}

TEST(FindProgram, path_is_searched_in_order) {
  test::TempDir dir;
  dir.write("a/tool", "not executable");
  const auto wanted = dir.write("b/tool", "#!/bin/sh\n");
  std::filesystem::permissions(wanted, std::filesystem::perms::owner_all);
  const test::ScopedEnv env("PATH", (dir.path() / "a").string() + ":" + (dir.path() / "b").string());
  EXPECT_EQ(*find_program("tool"), wanted);
}

TEST(FindProgram, a_file_that_is_not_executable_is_no_permission) {
  test::TempDir dir;
  const auto file = dir.write("tool", "data");
  const test::ScopedEnv env("PATH", dir.path().string());
  EXPECT_EQ(find_program("tool").error().kind, ErrorKind::no_permission);
  EXPECT_EQ(find_program(file.string()).error().kind, ErrorKind::no_permission);
  EXPECT_EQ(find_program("no-such-tool").error().kind, ErrorKind::not_found);
  EXPECT_EQ(find_program(dir.path().string()).error().kind, ErrorKind::invalid_argument);
}

}  // namespace
}  // namespace usdt
