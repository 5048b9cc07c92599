// SPDX-License-Identifier: BSD-2-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "parsers/quote.hpp"
#include "usdt/pattern.hpp"

namespace usdt {
namespace {

using ::testing::HasSubstr;

struct Case {
  const char* text;
  Moment moment;
  const char* target;
  const char* name;
  std::uint64_t offset;
};

class FunctionForms : public testing::TestWithParam<Case> {};

TEST_P(FunctionForms, parse_and_come_back_from_their_own_text) {
  const Case& expected = GetParam();
  const auto pattern = FunctionPattern::parse(expected.text);
  ASSERT_TRUE(pattern) << expected.text << ": " << pattern.error().message;
  EXPECT_EQ(pattern->moment, expected.moment) << expected.text;
  EXPECT_EQ(pattern->target, expected.target) << expected.text;
  EXPECT_EQ(pattern->name, expected.name) << expected.text;
  EXPECT_EQ(pattern->offset, expected.offset) << expected.text;
  const auto again = FunctionPattern::parse(pattern->str());
  ASSERT_TRUE(again) << pattern->str();
  EXPECT_EQ(again->str(), pattern->str());
  EXPECT_EQ(again->name, pattern->name);
  EXPECT_EQ(again->offset, pattern->offset);
}

INSTANTIATE_TEST_SUITE_P(All, FunctionForms,
                         testing::Values(Case{"uprobe:/bin/x:main", Moment::entry, "/bin/x", "main", 0},
                                         Case{"uretprobe:/bin/x:main", Moment::exit, "/bin/x", "main", 0},
                                         Case{"ur:libc:malloc", Moment::exit, "libc", "malloc", 0},
                                         Case{"ucall:libc.so.6:malloc", Moment::both, "libc.so.6", "malloc", 0},
                                         Case{"uprobe:main", Moment::entry, "", "main", 0},
                                         Case{"uprobe::main", Moment::entry, "", "main", 0},
                                         Case{"uprobe:*:main", Moment::entry, "*", "main", 0},
                                         // "::" is within a name.
                                         Case{"uprobe:/bin/x:ns::f", Moment::entry, "/bin/x", "ns::f", 0},
                                         Case{"uprobe:ns::f", Moment::entry, "", "ns::f", 0},
                                         Case{"uprobe:/bin/x:::f", Moment::entry, "/bin/x", "::f", 0},
                                         Case{"uprobe:/a:b:ns::S::f(int, char const*)", Moment::entry, "/a:b",
                                              "ns::S::f(int, char const*)", 0},
                                         Case{"uprobe:x:\"operator+(A, B)\"", Moment::entry, "x", "operator+(A, B)", 0},
                                         Case{"uprobe:x:\"f*\"", Moment::entry, "x", "f\\*", 0},
                                         // Offsets.
                                         Case{"uprobe:x:f+16", Moment::entry, "x", "f", 16},
                                         Case{"uprobe:x:f+0x1f", Moment::entry, "x", "f", 31},
                                         Case{"uprobe:x:operator+", Moment::entry, "x", "operator+", 0},
                                         Case{"uprobe:x:operator++4", Moment::entry, "x", "operator+", 4},
                                         Case{"uprobe:x:\"f+16\"", Moment::entry, "x", "f+16", 0},
                                         Case{"uprobe:x:f\\+16", Moment::entry, "x", "f+16", 0}));

TEST(FunctionPattern, says_what_is_wrong_and_where) {
  const auto error_of = [](std::string_view text) {
    const auto parsed = FunctionPattern::parse(text);
    EXPECT_FALSE(parsed) << text;
    return parsed ? Error{} : parsed.error();
  };
  EXPECT_EQ(error_of("uprobe:x:").column, 9U);
  EXPECT_THAT(error_of("uprobe:").message, HasSubstr("write uprobe:FILE:FUNCTION"));
  EXPECT_EQ(error_of("uretprobe:x:f+4").column, 13U);
  EXPECT_TRUE(error_of("ucall:x:f+0x4").message.ends_with("write ucall:x:f"));
  EXPECT_THAT(error_of("python:gc__start").message, HasSubstr("write uprobe:FILE:FUNCTION"));
}

TEST(Names, of_every_kind_are_read_by_one_grammar) {
  const auto patterns =
      parse_patterns({"python:gc__start", "uprobe:libc:malloc", "kfunc:vfs_read", "usdt:/bin/x:p:\"a:b\""});
  ASSERT_TRUE(patterns) << patterns.error().message;
  std::vector<std::string> texts;
  for (const PointPattern& pattern : *patterns) texts.push_back(to_string(pattern));
  EXPECT_THAT(texts, testing::ElementsAre("usdt::python:gc__start", "uprobe:libc:malloc", "kfunc:vfs_read",
                                          "usdt:/bin/x:p:a\\:b"));
  EXPECT_EQ(parse_patterns({"python:gc__start", "kfunc:"}).error().column, 6U);
  EXPECT_EQ(parse_pattern("profile:hz:99").error().kind, ErrorKind::not_supported);
}

}  // namespace
}  // namespace usdt
