// SPDX-License-Identifier: BSD-2-Clause
// Compiled objects and programs of both x86 sizes, judged by readelf -n.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "image_builder.hpp"
#include "programs.hpp"
#include "readelf.hpp"

namespace usdt::test {
namespace {

/// Parameter: compiler flags for one machine and code model.
class Compiled : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!can_compile(GetParam())) GTEST_SKIP() << "cc " << GetParam() << " cannot build a program with sys/sdt.h here";
    dir_.write("lib.c", kLibrarySource);
    dir_.write("main.c", kMainSource);
    const auto built = run_in(dir_, fmt::format("{0} -O2 {1} -c lib.c && {0} -O2 {1} -c main.c && "
                                                "{0} {1} lib.o main.o -Wl,--build-id -o prog",
                                                kCc, GetParam()));
    ASSERT_EQ(built.status, 0) << built.output;
  }
  TempDir dir_;
};

TEST_P(Compiled, object_has_the_notes_readelf_shows) {
  const ScanResult result = scan_file(dir_ / "lib.o");
  EXPECT_EQ(result.sites.size(), 2U);
  EXPECT_EQ(notes_by_scan(result), notes_by_readelf(dir_, dir_ / "lib.o"));
  EXPECT_TRUE(result.warnings.empty());
}

TEST_P(Compiled, object_shows_its_semaphores_by_their_relocations) {
  for (const Site& site : scan_file(dir_ / "lib.o").sites) {
    EXPECT_TRUE(site.has_semaphore) << site.name;
    EXPECT_FALSE(site.semaphore_offset);
    EXPECT_FALSE(site.offset);
    EXPECT_EQ(site.site_class, SiteClass::unknown);
  }
  EXPECT_FALSE(scan_file(dir_ / "main.o").sites.at(0).has_semaphore);
}

TEST_P(Compiled, program_has_the_notes_readelf_shows_and_places_them) {
  const ScanResult result = scan_file(dir_ / "prog");
  EXPECT_EQ(notes_by_scan(result), notes_by_readelf(dir_, dir_ / "prog"));
  ASSERT_EQ(result.sites.size(), 3U);
  const std::string bytes = read_file(dir_ / "prog");
  for (const Site& site : result.sites) {
    ASSERT_TRUE(site.offset) << site.name;
    EXPECT_EQ(bytes[site.offset->value], '\x90');
    EXPECT_EQ(site.site_class, SiteClass::nop);
    EXPECT_EQ(site.has_semaphore, site.name != "start");
    EXPECT_EQ(site.semaphore_offset.has_value(), site.has_semaphore);
  }
}

TEST_P(Compiled, program_without_section_headers_keeps_its_build_id_and_tells_no_lies) {
  // .note.stapsdt of sys/sdt.h is in no segment, so without section headers there are no notes.
  std::string bytes = read_file(dir_ / "prog");
  if (bytes[EI_CLASS] == ELFCLASS64) {
    edit_header<Elf64_Ehdr>(bytes, [](Elf64_Ehdr& h) { h.e_shoff = h.e_shnum = h.e_shstrndx = 0; });
  } else {
    edit_header<Elf32_Ehdr>(bytes, [](Elf32_Ehdr& h) { h.e_shoff = h.e_shnum = h.e_shstrndx = 0; });
  }
  const auto bare = dir_.write("bare", bytes);
  const ScanResult result = scan_file(bare);
  EXPECT_TRUE(result.sites.empty());
  EXPECT_TRUE(result.warnings.empty());
  EXPECT_NE(ElfFile::open(bare)->build_id(), "");
  EXPECT_EQ(ElfFile::open(bare)->build_id(), ElfFile::open(dir_ / "prog")->build_id());
}

INSTANTIATE_TEST_SUITE_P(Machines, Compiled,
                         testing::Values("-pie -fPIE", "-no-pie -fno-pie", "-m32 -pie -fPIE", "-m32 -no-pie -fno-pie",
                                         "-static"));

}  // namespace
}  // namespace usdt::test
