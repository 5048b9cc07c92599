// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/format_string.hpp"

#include <gtest/gtest.h>

namespace usdt {
namespace {

TEST(FormatString, takes_directives_of_printf_names_and_values_in_place) {
  const auto format = parse_format_string("%-16{comm} %5d%%\\t%#llx %.3s %{str(arg1)}");
  ASSERT_FALSE(format) << "values by --print and in place";
  const auto listed = parse_format_string("%-16{comm} %5d%%\\t%#llx %.3s");
  ASSERT_TRUE(listed) << listed.error().message;
  ASSERT_EQ(listed->pieces.size(), 7U);
  EXPECT_EQ(listed->pieces[0].field, EventField::comm);
  EXPECT_TRUE(listed->pieces[0].left);
  EXPECT_EQ(listed->pieces[0].width, 16U);
  EXPECT_EQ(listed->pieces[2].conversion, 'd');
  EXPECT_EQ(listed->pieces[2].column, 11U);
  EXPECT_EQ(listed->pieces[3].text, "%\t");
  EXPECT_EQ(listed->pieces[4].conversion, 'x');
  EXPECT_TRUE(listed->pieces[4].prefix);
  EXPECT_EQ(listed->pieces[6].precision, 3U);
  EXPECT_EQ(listed->values(), 3U);
  const auto placed = parse_format_string("%{time} %{str(arg1)} took %{duration}");
  ASSERT_TRUE(placed) << placed.error().message;
  ASSERT_EQ(placed->list.size(), 1U);
  EXPECT_EQ(placed->list[0].label, "str(arg1)");
}

TEST(FormatString, says_where_it_does_not_understand) {
  struct Bad {
    const char* text;
    std::uint32_t column;
  };
  for (const Bad& bad : {Bad{"", 0},
                         {"%", 0},
                         {"a %y", 2},
                         {"%5", 0},
                         {"% ", 0},
                         {"%9999d", 1},
                         {"%{comm", 1},
                         {"%{}", 2},
                         {"%{a b}", 4},
                         {"%{arg0, arg1}", 2},
                         {"a\\q", 1},
                         {"%99999999999999999999d", 1}}) {
    const auto format = parse_format_string(bad.text);
    ASSERT_FALSE(format) << bad.text;
    EXPECT_EQ(format.error().column, bad.column) << bad.text << ": " << format.error().message;
  }
}

}  // namespace
}  // namespace usdt
