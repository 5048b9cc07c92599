// SPDX-License-Identifier: BSD-2-Clause
#include "proc/maps.hpp"

#include <gtest/gtest.h>

namespace usdt::proc {
namespace {

TEST(Maps, a_line_gives_its_range_offset_device_inode_and_path) {
  const auto maps = parse_maps(
      "7f0a1c000000-7f0a1c028000 r-xp 00001000 fe:01 131104                     /usr/lib/x86_64-linux-gnu/libc.so.6\n");
  ASSERT_EQ(maps.size(), 1U);
  EXPECT_EQ(maps[0].start, ProcessAddr(0x7f0a1c000000));
  EXPECT_EQ(maps[0].end, ProcessAddr(0x7f0a1c028000));
  EXPECT_TRUE(maps[0].executable);
  EXPECT_EQ(maps[0].offset, 0x1000U);
  EXPECT_EQ(maps[0].major, 0xfeU);
  EXPECT_EQ(maps[0].minor, 1U);
  EXPECT_EQ(maps[0].inode, 131104U);
  EXPECT_EQ(maps[0].path, "/usr/lib/x86_64-linux-gnu/libc.so.6");
}

TEST(Maps, a_path_keeps_its_spaces_and_its_deleted_mark) {
  const auto maps = parse_maps("1000-2000 r-xp 00000000 00:2e 7 /tmp/my  program (deleted)\n");
  ASSERT_EQ(maps.size(), 1U);
  EXPECT_EQ(maps[0].path, "/tmp/my  program (deleted)");
}

TEST(Maps, an_escaped_newline_is_a_newline_again) {
  const auto maps = parse_maps("1000-2000 r-xp 00000000 00:2e 7 /tmp/two\\012lines\n");
  ASSERT_EQ(maps.size(), 1U);
  EXPECT_EQ(maps[0].path, "/tmp/two\nlines");
}

TEST(Maps, an_anonymous_mapping_has_no_path) {
  const auto maps = parse_maps("1000-2000 rw-p 00000000 00:00 0 \n2000-3000 ---p 00000000 00:00 0");
  ASSERT_EQ(maps.size(), 2U);
  EXPECT_EQ(maps[0].path, "");
  EXPECT_FALSE(maps[1].executable);
}

TEST(Maps, an_inode_of_64_bits_is_whole) {
  const auto maps = parse_maps("1000-2000 r-xp 00000000 00:2e 18446744073709551615 /x\n");
  ASSERT_EQ(maps.size(), 1U);
  EXPECT_EQ(maps[0].inode, UINT64_MAX);
}

TEST(Maps, lines_of_another_form_are_passed_over) {
  EXPECT_TRUE(parse_maps("").empty());
  EXPECT_TRUE(parse_maps("\n\n").empty());
  EXPECT_TRUE(parse_maps("1000-").empty());
  EXPECT_TRUE(parse_maps("xyz-2000 r-xp 00000000 00:2e 7 /x\n").empty());
  EXPECT_TRUE(parse_maps("1000-2000 r-\n").empty());
  EXPECT_TRUE(parse_maps("1000-99999999999999999 r-xp 0 00:2e 7 /x\n").empty());
  EXPECT_EQ(parse_maps("nonsense\n1000-2000 r-xp 0 00:2e 7 /x\nnonsense").size(), 1U);
}

}  // namespace
}  // namespace usdt::proc
