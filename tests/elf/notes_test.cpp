// SPDX-License-Identifier: BSD-2-Clause
// Malformed and foreign notes: each is passed over with a warning that says where, and the next one is still found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "image_builder.hpp"
#include "toolchain.hpp"

namespace usdt::test {
namespace {

using std::string_view_literals::operator""sv;
using testing::HasSubstr;

constexpr std::string_view kOwner = "stapsdt\0"sv;

/// Scans a library whose note section is `bad` between two good notes.
class NoteBetweenTwoGoodOnes : public testing::Test {
 protected:
  ScanResult scan(const std::string& bad) {
    const std::string first = stapsdt_note({.pc = 0x1001, .name = "first"});
    const std::string image = library_with(first + bad + stapsdt_note({.pc = 0x1002, .name = "last"}));
    bad_offset_ = image.find(first) + first.size();
    return scan_file(dir_.write("lib.so", image), {.debug_dirs = {}});
  }
  /// `bad` is skipped with one warning that contains `reason`, and both neighbours are found.
  void expect_skipped(const std::string& bad, std::string_view reason) {
    const ScanResult result = scan(bad);
    ASSERT_EQ(result.sites.size(), 2U);
    EXPECT_EQ(result.sites[0].name, "first");
    EXPECT_EQ(result.sites[1].name, "last");
    ASSERT_EQ(result.warnings.size(), 1U);
    EXPECT_EQ(result.warnings[0].where.value, bad_offset_);
    EXPECT_THAT(result.warnings[0].message, HasSubstr(reason));
    EXPECT_THAT(result.warnings[0].message, HasSubstr("file offset 0x"));
  }

  TempDir dir_;
  std::size_t bad_offset_ = 0;
};

TEST_F(NoteBetweenTwoGoodOnes, is_found_itself_when_it_is_good) {
  const ScanResult result = scan(stapsdt_note({.pc = 0x1003, .name = "middle"}));
  ASSERT_EQ(result.sites.size(), 3U);
  EXPECT_EQ(result.sites[1].name, "middle");
  EXPECT_TRUE(result.warnings.empty());
}

TEST_F(NoteBetweenTwoGoodOnes, is_skipped_when_its_owner_is_foreign) {
  expect_skipped(note("GNU\0"sv, 3, std::string(20, 'x')), "foreign owner 'GNU'");
}
TEST_F(NoteBetweenTwoGoodOnes, is_skipped_when_its_owner_has_odd_bytes) {
  expect_skipped(note("\x1b[31m\0"sv, 3, ""), "foreign owner '?[31m'");
}
TEST_F(NoteBetweenTwoGoodOnes, is_skipped_when_the_owner_lacks_its_nul) {
  expect_skipped(note("stapsdt"sv, 3, stapsdt_desc({})), "owner's name is not 8 bytes");
}
TEST_F(NoteBetweenTwoGoodOnes, is_skipped_when_the_owner_is_longer) {
  expect_skipped(note("stapsdt2\0"sv, 3, stapsdt_desc({})), "owner's name is not 8 bytes");
}
TEST_F(NoteBetweenTwoGoodOnes, is_skipped_when_its_type_is_not_3) {
  expect_skipped(note(kOwner, 4, stapsdt_desc({})), "type is not 3");
}
TEST_F(NoteBetweenTwoGoodOnes, is_skipped_when_it_has_no_room_for_three_addresses) {
  expect_skipped(note(kOwner, 3, std::string(23, '\0')), "too short");
}
TEST_F(NoteBetweenTwoGoodOnes, is_skipped_when_its_descriptor_is_empty) {
  expect_skipped(note(kOwner, 3, ""), "too short");
}
TEST_F(NoteBetweenTwoGoodOnes, is_skipped_when_the_provider_is_not_terminated) {
  expect_skipped(note(kOwner, 3, std::string(24, '\0') + "prov"), "provider is not terminated");
}
TEST_F(NoteBetweenTwoGoodOnes, is_skipped_when_the_name_is_not_terminated) {
  expect_skipped(note(kOwner, 3, std::string(24, '\0') + std::string("prov\0name", 9)), "name is not terminated");
}
TEST_F(NoteBetweenTwoGoodOnes, is_skipped_when_the_name_is_empty) {
  expect_skipped(note(kOwner, 3, std::string(24, '\0') + std::string("prov\0\0\0", 7)), "name is empty");
}
TEST_F(NoteBetweenTwoGoodOnes, is_skipped_when_the_arguments_are_missing) {
  expect_skipped(note(kOwner, 3, std::string(24, '\0') + std::string("prov\0name\0", 10)), "argument text is missing");
}
TEST_F(NoteBetweenTwoGoodOnes, is_skipped_when_the_arguments_are_not_terminated) {
  expect_skipped(note(kOwner, 3, std::string(24, '\0') + std::string("prov\0name\0004@%eax", 16)),
                 "argument text is not terminated");
}
TEST_F(NoteBetweenTwoGoodOnes, may_be_followed_by_zero_fill) {
  const ScanResult result = scan(std::string(16, '\0'));
  EXPECT_EQ(result.sites.size(), 2U);
  EXPECT_TRUE(result.warnings.empty());
}
TEST_F(NoteBetweenTwoGoodOnes, may_carry_bytes_behind_its_strings) {
  const ScanResult result = scan(note(kOwner, 3, stapsdt_desc({.name = "middle"}) + "more"));
  ASSERT_EQ(result.sites.size(), 3U);
  EXPECT_EQ(result.sites[1].args_text, "8@%rdi");
}

TEST_F(NoteBetweenTwoGoodOnes, ends_its_section_when_it_claims_more_than_there_is) {
  for (const std::uint32_t lie : {0x1000U, 0x7fffffffU, 0xfffffff0U, 0xffffffffU}) {
    for (const std::size_t field : {0U, 4U}) {
      std::string bad = stapsdt_note({});
      std::memcpy(bad.data() + field, &lie, sizeof lie);
      const ScanResult result = scan(bad);
      ASSERT_EQ(result.sites.size(), 1U);
      EXPECT_EQ(result.sites[0].name, "first");
      ASSERT_EQ(result.warnings.size(), 1U);
      EXPECT_EQ(result.warnings[0].where.value, bad_offset_);
      EXPECT_THAT(result.warnings[0].message, HasSubstr("the rest is not read"));
    }
  }
}

TEST(Notes, end_inside_a_header_with_a_warning) {
  const TempDir dir;
  const ScanResult result = scan_file(dir.write("lib.so", library_with(stapsdt_note({}) + std::string(8, '\x08'))));
  EXPECT_EQ(result.sites.size(), 1U);
  ASSERT_EQ(result.warnings.size(), 1U);
  EXPECT_THAT(result.warnings[0].message, HasSubstr("claims 12 bytes, 8 are left"));
}

TEST(Notes, of_another_section_are_still_read_behind_a_damaged_one) {
  const TempDir dir;
  std::string damaged = stapsdt_note({.name = "damaged"});
  damaged[1] = '\x7f';
  const std::string image = ImageBuilder()
                                .section(".note.stapsdt", SHT_NOTE, 0, 0, damaged)
                                .section(".note.stapsdt", SHT_NOTE, 0, 0, stapsdt_note({.name = "sound"}))
                                .build();
  const ScanResult result = scan_file(dir.write("lib.so", image));
  ASSERT_EQ(result.sites.size(), 1U);
  EXPECT_EQ(result.sites[0].name, "sound");
  EXPECT_EQ(result.warnings.size(), 1U);
}

TEST(Notes, warnings_stop_at_a_number_people_can_read) {
  const TempDir dir;
  std::string notes;
  for (int i = 0; i < 5000; ++i) notes += note("GNU\0"sv, 1, "");
  const ScanResult result = scan_file(dir.write("lib.so", library_with(notes + stapsdt_note({}))));
  EXPECT_EQ(result.sites.size(), 1U);
  EXPECT_LT(result.warnings.size(), 1000U);
  EXPECT_THAT(result.warnings.back().message, HasSubstr("left out"));
}

TEST(Notes, of_32_bit_files_have_4_byte_words) {
  const TempDir dir;
  const std::string image =
      ImageBuilder(false, EM_386)
          .segment(PT_LOAD, PF_R | PF_X, 0x1000, std::string(16, '\x90'))
          .section(".note.stapsdt", SHT_NOTE, 0, 0, stapsdt_note({.pc = 0x1004, .semaphore = 0x3000}, false))
          .build();
  const ScanResult result = scan_file(dir.write("lib.so", image));
  ASSERT_EQ(result.sites.size(), 1U);
  EXPECT_EQ(result.sites[0].pc, VirtAddr(0x1004));
  EXPECT_EQ(result.sites[0].semaphore, VirtAddr(0x3000));
  ASSERT_TRUE(result.sites[0].offset);
  EXPECT_EQ(image[result.sites[0].offset->value], '\x90');
}

}  // namespace
}  // namespace usdt::test
