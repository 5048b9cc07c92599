// SPDX-License-Identifier: BSD-2-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "parsers/quote.hpp"
#include "usdt/pattern.hpp"

namespace usdt {
namespace {

using ::testing::HasSubstr;

struct FunctionText {
  const char* text;
  Moment moment;
  const char* target;
  const char* name;
  std::uint64_t offset;
};

class FunctionForms : public testing::TestWithParam<FunctionText> {};

TEST_P(FunctionForms, parse_and_come_back_from_their_own_text) {
  const FunctionText& expected = GetParam();
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
                         testing::Values(FunctionText{"uprobe:/bin/x:main", Moment::entry, "/bin/x", "main", 0},
                                         FunctionText{"uretprobe:/bin/x:main", Moment::exit, "/bin/x", "main", 0},
                                         FunctionText{"ur:libc:malloc", Moment::exit, "libc", "malloc", 0},
                                         FunctionText{"ucall:libc.so.6:malloc", Moment::both, "libc.so.6", "malloc", 0},
                                         FunctionText{"uprobe:main", Moment::entry, "", "main", 0},
                                         FunctionText{"uprobe::main", Moment::entry, "", "main", 0},
                                         FunctionText{"uprobe:*:main", Moment::entry, "*", "main", 0},
                                         // "::" is within a name.
                                         FunctionText{"uprobe:/bin/x:ns::f", Moment::entry, "/bin/x", "ns::f", 0},
                                         FunctionText{"uprobe:ns::f", Moment::entry, "", "ns::f", 0},
                                         FunctionText{"uprobe:/bin/x:::f", Moment::entry, "/bin/x", "::f", 0},
                                         FunctionText{"uprobe:/a:b:ns::S::f(int, char const*)", Moment::entry, "/a:b",
                                                      "ns::S::f(int, char const*)", 0},
                                         FunctionText{"uprobe:x:\"operator+(A, B)\"", Moment::entry, "x",
                                                      "operator+(A, B)", 0},
                                         FunctionText{"uprobe:x:\"f*\"", Moment::entry, "x", "f\\*", 0},
                                         // Offsets.
                                         FunctionText{"uprobe:x:f+16", Moment::entry, "x", "f", 16},
                                         FunctionText{"uprobe:x:f+0x1f", Moment::entry, "x", "f", 31},
                                         FunctionText{"uprobe:x:operator+", Moment::entry, "x", "operator+", 0},
                                         FunctionText{"uprobe:x:operator++4", Moment::entry, "x", "operator+", 4},
                                         FunctionText{"uprobe:x:\"f+16\"", Moment::entry, "x", "f+16", 0},
                                         FunctionText{"uprobe:x:f\\+16", Moment::entry, "x", "f+16", 0}));

struct Line {
  const char* text;
  const char* target;
  const char* source_file;
  std::uint32_t line;
};

class LineForms : public testing::TestWithParam<Line> {};

TEST_P(LineForms, parse_and_come_back_from_their_own_text) {
  const Line& expected = GetParam();
  const auto pattern = FunctionPattern::parse(expected.text);
  ASSERT_TRUE(pattern) << expected.text << ": " << pattern.error().message;
  const auto again = FunctionPattern::parse(pattern->str());
  ASSERT_TRUE(again) << pattern->str();
  for (const FunctionPattern& each : {*pattern, *again}) {
    EXPECT_EQ(each.moment, Moment::entry);
    EXPECT_EQ(each.target, expected.target) << expected.text;
    EXPECT_EQ(each.source_file, expected.source_file) << expected.text;
    EXPECT_EQ(each.line, expected.line) << expected.text;
    EXPECT_TRUE(each.name.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(All, LineForms,
                         testing::Values(Line{"uprobe:/bin/x:@server.c:120", "/bin/x", "server.c", 120},
                                         Line{"uprobe:@server.c:120", "", "server.c", 120},
                                         Line{"uprobe:libc.so.6:@malloc/malloc.c:3301", "libc.so.6", "malloc/malloc.c",
                                              3301},
                                         Line{"uprobe:/a:b:@/src/ns/a b.c:1", "/a:b", "/src/ns/a b.c", 1},
                                         Line{"uprobe:x:@odd\\:name*.c:7", "x", "odd:name*.c", 7}));

TEST(Types, are_read_from_what_people_write) {
  const auto types = parse_types("i32, str,f64 , u8,ptr,bool");
  ASSERT_TRUE(types) << types.error().message;
  EXPECT_THAT(*types, testing::ElementsAre(Type{4, true, TypeKind::integer}, Type{0, false, TypeKind::text},
                                           Type{8, false, TypeKind::floating}, Type{1, false, TypeKind::integer},
                                           Type{0, false, TypeKind::pointer}, Type{1, false, TypeKind::boolean}));
  EXPECT_EQ(parse_types("i32, u33").error().column, 5U);
  EXPECT_THAT(parse_types("i32, u33").error().message, HasSubstr("'u33' is no type of an argument; did you mean u32"));
  EXPECT_EQ(parse_types("i32,").error().column, 4U);
  EXPECT_FALSE(parse_types(""));
}

TEST(FunctionPattern, says_what_a_line_lacks) {
  const auto error_of = [](std::string_view text) {
    const auto parsed = FunctionPattern::parse(text);
    EXPECT_FALSE(parsed) << text;
    return parsed ? std::string() : parsed.error().message;
  };
  EXPECT_THAT(error_of("uprobe:x:@server.c"), HasSubstr("has no line: write @FILE:LINE"));
  EXPECT_THAT(error_of("uprobe:x:@server.c:main"), HasSubstr("'main' is no line"));
  EXPECT_THAT(error_of("uprobe:x:@server.c:0"), HasSubstr("is no line"));
  EXPECT_THAT(error_of("uprobe:x:@server.c:99999999999"), HasSubstr("is no line"));
  EXPECT_THAT(error_of("uprobe:x:@:12"), HasSubstr("empty source file"));
  EXPECT_THAT(error_of("uretprobe:x:@server.c:12"), HasSubstr("a line is no call"));
  const auto symbol = FunctionPattern::parse("uprobe:x:\"@odd:12\"");
  ASSERT_TRUE(symbol);
  EXPECT_EQ(FunctionPattern::parse(symbol->str())->name, symbol->name);
  EXPECT_TRUE(symbol->source_file.empty());
}

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
