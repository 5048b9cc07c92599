// SPDX-License-Identifier: BSD-2-Clause
// Notes that only the separate debug file still has, found as GDB finds it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elf/symbols.hpp"
#include "programs.hpp"
#include "readelf.hpp"

namespace usdt::test {
namespace {

namespace fs = std::filesystem;

/// "prog" without notes, symbols and .comment; "prog.debug" with them; "whole" as it was linked.
class SplitProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_compile("")) GTEST_SKIP() << "no compiler with sys/sdt.h";
    dir_.write("lib.c", kLibrarySource);
    dir_.write("main.c", kMainSource);
    const auto built = run_in(dir_,
                              "cc -g -O2 lib.c main.c -o whole -Wl,--build-id=0x0123456789abcdef && "
                              "objcopy --only-keep-debug whole prog.debug && "
                              "objcopy -g --strip-all --remove-section=.note.stapsdt --remove-section=.comment "
                              "--add-gnu-debuglink=prog.debug whole prog && mkdir .debug root");
    ASSERT_EQ(built.status, 0) << built.output;
  }
  void move_debug_file_to(const fs::path& where) {
    fs::create_directories(where.parent_path());
    fs::rename(dir_ / "prog.debug", where);
  }
  /// The sites found are those of "whole", with offsets, bytes and classes of the main file.
  void expect_found(const fs::path& debug) {
    const ScanResult split = scan_file(dir_ / "prog", {.debug_dirs = {dir_ / "root"}});
    const ScanResult whole = scan_file(dir_ / "whole");
    ASSERT_EQ(whole.sites.size(), 3U);
    EXPECT_EQ(notes_by_scan(split), notes_by_scan(whole));
    EXPECT_EQ(split.debug_file, debug);
    for (std::size_t i = 0; i < split.sites.size(); ++i) {
      EXPECT_EQ(split.sites[i].offset, whole.sites[i].offset);
      EXPECT_EQ(split.sites[i].semaphore_offset, whole.sites[i].semaphore_offset);
      EXPECT_EQ(split.sites[i].bytes.data, whole.sites[i].bytes.data);
      EXPECT_EQ(split.sites[i].site_class, SiteClass::nop);
    }
  }
  void expect_not_found() {
    const ScanResult split = scan_file(dir_ / "prog", {.debug_dirs = {dir_ / "root"}});
    EXPECT_TRUE(split.sites.empty());
    EXPECT_FALSE(split.debug_file);
  }
  TempDir dir_;
};

TEST_F(SplitProgram, finds_its_debug_file_beside_it) { expect_found(dir_ / "prog.debug"); }

TEST_F(SplitProgram, finds_its_debug_file_in_the_debug_subdirectory) {
  move_debug_file_to(dir_ / ".debug/prog.debug");
  expect_found(dir_ / ".debug/prog.debug");
}

TEST_F(SplitProgram, finds_its_debug_file_under_the_debug_root) {
  const fs::path there = dir_ / "root" / fs::canonical(dir_.path()).relative_path() / "prog.debug";
  move_debug_file_to(there);
  expect_found(there);
}

TEST_F(SplitProgram, finds_its_debug_file_by_build_id) {
  const fs::path there = dir_ / "root/.build-id/01/23456789abcdef.debug";
  move_debug_file_to(there);
  expect_found(there);
}

TEST_F(SplitProgram, passes_over_a_debug_file_whose_crc_differs) {
  ASSERT_EQ(run_in(dir_, "printf x >> prog.debug").status, 0);
  expect_not_found();
}

TEST_F(SplitProgram, passes_over_a_debug_file_of_another_build) {
  const auto built = run_in(dir_,
                            "cc -g -O2 lib.c main.c -o other -Wl,--build-id=0x99 && "
                            "mkdir -p root/.build-id/01 && mv other root/.build-id/01/23456789abcdef.debug && "
                            "rm prog.debug");
  ASSERT_EQ(built.status, 0) << built.output;
  expect_not_found();
}

TEST_F(SplitProgram, is_listed_without_its_debug_file_as_having_no_probes) {
  fs::remove(dir_ / "prog.debug");
  expect_not_found();
}

TEST_F(SplitProgram, keeps_to_its_own_notes_where_it_has_them) { EXPECT_FALSE(scan_file(dir_ / "whole").debug_file); }

TEST_F(SplitProgram, has_a_debug_file_that_lists_itself) {
  const auto file = ElfFile::open(dir_ / "prog.debug");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->kind(), ElfKind::debug);
  EXPECT_EQ(file->build_id(), "0123456789abcdef");
  const ScanResult result = scan_file(dir_ / "prog.debug");
  EXPECT_EQ(notes_by_scan(result), notes_by_readelf(dir_, dir_ / "prog.debug"));
  ASSERT_EQ(result.sites.size(), 3U);
  for (const Site& site : result.sites) {
    EXPECT_FALSE(site.offset);
    EXPECT_FALSE(site.semaphore_offset);
    EXPECT_EQ(site.site_class, SiteClass::unknown);
  }
}

TEST_F(SplitProgram, resolves_symbols_through_its_debug_file) {
  const auto split = ElfFile::open(dir_ / "prog");
  const auto whole = ElfFile::open(dir_ / "whole");
  ASSERT_TRUE(split && whole);
  const elf::SymbolIndex of_split(*split);
  const elf::SymbolIndex of_whole(*whole);
  ASSERT_TRUE(of_split.address("work"));
  EXPECT_EQ(*of_split.address("work"), *of_whole.address("work"));
  EXPECT_TRUE(of_split.compilers().gcc);
  fs::remove(dir_ / "prog.debug");
  EXPECT_FALSE(elf::SymbolIndex(*split).address("work"));
}

}  // namespace
}  // namespace usdt::test
