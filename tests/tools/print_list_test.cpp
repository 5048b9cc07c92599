// SPDX-License-Identifier: BSD-2-Clause
#include "usdt-trace/print_list.hpp"

#include <gtest/gtest.h>

namespace usdt_trace {
namespace {

TEST(PrintList, takes_values_texts_and_hex_in_any_spacing) {
  const auto list = parse_print_list(" arg0,str( arg1 ) , hex(arg12)");
  ASSERT_TRUE(list) << list.error().message;
  ASSERT_EQ(list->size(), 3U);
  EXPECT_EQ((*list)[0].form, PrintItem::Form::value);
  EXPECT_EQ((*list)[1].form, PrintItem::Form::text);
  EXPECT_EQ((*list)[1].arg, 1);
  EXPECT_EQ((*list)[2].form, PrintItem::Form::hex);
  EXPECT_EQ((*list)[2].label, "hex(arg12)");
}

struct BadList {
  const char* text;
  std::uint32_t column;
};

TEST(PrintList, says_where_it_does_not_understand) {
  for (const BadList& bad : {BadList{"", 0},
                             {"arg", 0},
                             {"arg0,", 4},
                             {"arg0 arg1", 5},
                             {"str(arg0", 0},
                             {"ustr(arg0)", 0},
                             {"arg0, foo(arg1)", 4},
                             {"arg256", 5},
                             {"arg-1", 0}}) {
    const auto list = parse_print_list(bad.text);
    ASSERT_FALSE(list) << bad.text;
    EXPECT_EQ(list.error().kind, usdt::ErrorKind::syntax);
    EXPECT_EQ(list.error().column, bad.column) << bad.text << ": " << list.error().message;
  }
}

}  // namespace
}  // namespace usdt_trace
