// SPDX-License-Identifier: BSD-2-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "image_builder.hpp"
#include "programs.hpp"
#include "readelf.hpp"

namespace usdt::test {
namespace {

using testing::HasSubstr;

/// One member as ar stores it: a 60-byte header, the contents, an even end.
std::string member(const std::string& name, const std::string& contents) {
  std::string header(60, ' ');
  header.replace(0, name.size(), name);
  const std::string size = std::to_string(contents.size());
  header.replace(48, size.size(), size);
  header.replace(58, 2, "`\n");
  return header + contents + (contents.size() % 2 != 0 ? "\n" : "");
}

const std::string kMagic = "!<arch>\n";

class Archive : public testing::Test {
 protected:
  ScanResult scan(const std::string& bytes) { return scan_file(dir_.write("lib.a", bytes)); }
  std::string object(std::string_view name) {
    return ImageBuilder(true, EM_X86_64, ET_REL)
        .section(".note.stapsdt", SHT_NOTE, 0, 0, stapsdt_note({.name = name}))
        .build();
  }
  TempDir dir_;
};

TEST_F(Archive, made_by_ar_has_the_notes_readelf_shows) {
  if (!can_compile("")) GTEST_SKIP() << "no compiler with sys/sdt.h";
  dir_.write("lib.c", kLibrarySource);
  dir_.write("main.c", kMainSource);
  const auto built = run_in(dir_,
                            "cc -O2 -c lib.c -o a_member_with_a_very_long_name.o && cc -O2 -c main.c && "
                            "echo text > readme.txt && "
                            "ar rcs lib.a a_member_with_a_very_long_name.o main.o readme.txt");
  ASSERT_EQ(built.status, 0) << built.output;
  const ScanResult result = scan_file(dir_ / "lib.a");
  ASSERT_EQ(result.sites.size(), 3U);
  EXPECT_EQ(result.sites[0].member, "a_member_with_a_very_long_name.o");
  EXPECT_EQ(result.sites[2].member, "main.o");
  EXPECT_EQ(notes_by_scan(result), notes_by_readelf(dir_, dir_ / "lib.a"));
  EXPECT_EQ(ElfFile::open(dir_ / "lib.a")->kind(), ElfKind::archive);
  EXPECT_TRUE(result.warnings.empty());
}

TEST_F(Archive, thin_ones_are_refused_with_the_reason) {
  const Error error = open_error(dir_.write("thin.a", "!<thin>\n"));
  EXPECT_EQ(error.kind, ErrorKind::not_supported);
  EXPECT_THAT(error.message, HasSubstr("thin archive"));
}

TEST_F(Archive, without_elf_members_is_not_supported) {
  const Error error = open_error(dir_.write("x.deb", kMagic + member("debian-binary", "2.0\n")));
  EXPECT_EQ(error.kind, ErrorKind::not_supported);
  EXPECT_THAT(error.message, HasSubstr("without ELF members"));
}

TEST_F(Archive, knows_gnu_and_bsd_names) {
  const std::string names = "a_long_name_of_a_member.o/\nanother_long_name_here.o/\n";
  const std::string bsd_name = std::string("bsd name.o\0\0", 12);
  const ScanResult result = scan(kMagic + member("/", "index") + member("//", names) + member("/27", object("a")) +
                                 member("/0", object("b")) + member("short.o/", object("c")) +
                                 member("#1/12", bsd_name + object("d")) + member("/999", object("e")));
  std::vector<std::string> members;
  for (const Site& site : result.sites) members.push_back(site.member + ":" + site.name);
  EXPECT_THAT(members, testing::ElementsAre("another_long_name_here.o:a", "a_long_name_of_a_member.o:b", "short.o:c",
                                            "bsd name.o:d", "/999:e"));
}

TEST_F(Archive, a_member_that_is_damaged_hides_no_other) {
  std::string bad = object("bad");
  bad[EI_CLASS] = 9;
  std::string foreign = object("foreign");
  foreign[offsetof(Elf64_Ehdr, e_machine)] = 8;
  const ScanResult result = scan(kMagic + member("bad.o/", bad) + member("cut.o/", object("cut").substr(0, 40)) +
                                 member("mips.o/", foreign) + member("good.o/", object("good")));
  ASSERT_EQ(result.sites.size(), 1U);
  EXPECT_EQ(result.sites[0].member, "good.o");
  ASSERT_EQ(result.warnings.size(), 3U);
  EXPECT_THAT(result.warnings[0].message, HasSubstr("bad.o"));
  EXPECT_EQ(result.warnings[0].where, FileOffset(8 + 60));
}

TEST_F(Archive, members_keep_their_file_offsets_in_warnings) {
  std::string bad = stapsdt_note({});
  bad[8] = 9;
  const std::string image = ImageBuilder(true, EM_X86_64, ET_REL).section(".note.stapsdt", SHT_NOTE, 0, 0, bad).build();
  const std::string archive = kMagic + member("one.o/", object("one")) + member("two.o/", image);
  const ScanResult result = scan(archive);
  ASSERT_EQ(result.warnings.size(), 1U);
  EXPECT_EQ(result.warnings[0].where.value, archive.find(bad));
  EXPECT_THAT(result.warnings[0].message, HasSubstr("two.o: note at file offset"));
}

TEST_F(Archive, that_breaks_off_says_where) {
  const std::string good = kMagic + member("good.o/", object("good"));
  const std::string next = member("next.o/", object("next"));
  std::string no_magic = next, no_size = next;
  no_magic[58] = 'x';
  no_size[48] = '-';
  for (const std::string& rest : {next.substr(0, 30), next.substr(0, 100), no_magic, no_size}) {
    const ScanResult result = scan(good + rest);
    EXPECT_EQ(result.sites.size(), 1U);
    ASSERT_EQ(result.warnings.size(), 1U);
    EXPECT_EQ(result.warnings[0].where.value, good.size());
    EXPECT_THAT(result.warnings[0].message, HasSubstr("archive member header at file offset"));
  }
}

TEST_F(Archive, that_breaks_off_before_its_first_member_is_malformed) {
  EXPECT_EQ(open_error(dir_.write("x.a", kMagic + "garbage")).kind, ErrorKind::malformed);
}

TEST_F(Archive, has_no_symbol_addresses) {
  const auto file = ElfFile::open(dir_.write("lib.a", kMagic + member("good.o/", object("good"))));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->build_id(), "");
}

}  // namespace
}  // namespace usdt::test
