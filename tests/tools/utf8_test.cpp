// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/utf8.hpp"

#include <gtest/gtest.h>

namespace usdt {
namespace {

TEST(Utf8, accepts_what_rfc_3629_accepts) {
  for (const char* good :
       {"", "plain", "\xc3\xa9", "\xe2\x82\xac", "\xed\x9f\xbf", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"}) {
    std::string_view rest = good;
    while (!rest.empty() && utf8_sequence(rest) > 0) rest.remove_prefix(utf8_sequence(rest));
    EXPECT_TRUE(rest.empty()) << good;
  }
}

TEST(Utf8, refuses_overlong_forms_surrogates_and_loose_bytes) {
  for (const char* bad :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8", "\xc3", "\xff"})
    EXPECT_EQ(utf8_sequence(bad), 0U) << bad;
}

TEST(Utf8, knows_the_character_of_a_sequence) {
  EXPECT_EQ(utf8_code_point("a"), U'a');
  EXPECT_EQ(utf8_code_point("\xc3\xa9"), U'\u00e9');
  EXPECT_EQ(utf8_code_point("\xe2\x82\xac"), U'\u20ac');
  EXPECT_EQ(utf8_code_point("\xf4\x8f\xbf\xbf"), U'\U0010ffff');
}

TEST(Utf8, drops_half_a_character_left_by_a_cut) {
  EXPECT_EQ(without_partial_utf8("ab\xe2\x82"), "ab");
  EXPECT_EQ(without_partial_utf8("ab\xe2"), "ab");
  EXPECT_EQ(without_partial_utf8("ab\xe2\x82\xac"), "ab\xe2\x82\xac");
  EXPECT_EQ(without_partial_utf8("ab"), "ab");
}

}  // namespace
}  // namespace usdt
