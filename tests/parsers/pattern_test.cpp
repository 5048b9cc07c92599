// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/pattern.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "parsers/quote.hpp"

namespace usdt {
namespace {

TEST(GlobMatch, compares_plain_text_whole) {
  EXPECT_TRUE(glob_match("", ""));
  EXPECT_TRUE(glob_match("gc__start", "gc__start"));
  EXPECT_FALSE(glob_match("gc__start", "gc__start2"));
  EXPECT_FALSE(glob_match("gc__start", "gc__star"));
  EXPECT_FALSE(glob_match("", "x"));
}

TEST(GlobMatch, lets_a_star_stand_for_any_run_anywhere) {
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("*", "anything"));
  EXPECT_TRUE(glob_match("gc*", "gc__start"));
  EXPECT_TRUE(glob_match("*start", "gc__start"));
  EXPECT_TRUE(glob_match("*__*", "gc__start"));
  EXPECT_TRUE(glob_match("a*b*c", "aXbYbZc"));
  EXPECT_TRUE(glob_match("**a**", "a"));
  EXPECT_FALSE(glob_match("a*b*c", "aXcYb"));
  EXPECT_FALSE(glob_match("*x*", "gc__start"));
}

TEST(GlobMatch, lets_a_question_mark_stand_for_one_character) {
  EXPECT_TRUE(glob_match("a?c", "abc"));
  EXPECT_FALSE(glob_match("a?c", "ac"));
  EXPECT_FALSE(glob_match("?", ""));
  EXPECT_TRUE(glob_match("*?c", "abc"));
}

TEST(GlobMatch, knows_classes_ranges_and_their_negation) {
  EXPECT_TRUE(glob_match("arg[0-9]", "arg7"));
  EXPECT_FALSE(glob_match("arg[0-9]", "argx"));
  EXPECT_TRUE(glob_match("[!a-c]x", "dx"));
  EXPECT_FALSE(glob_match("[!a-c]x", "bx"));
  EXPECT_TRUE(glob_match("[^a]", "b"));
  EXPECT_TRUE(glob_match("[]x]", "]"));
  EXPECT_TRUE(glob_match("[!]]", "x"));
  EXPECT_TRUE(glob_match("[a-]", "-"));
  EXPECT_TRUE(glob_match("[\\]]", "]"));
  EXPECT_TRUE(glob_match("*[0-9]", "a1b2"));
}

TEST(GlobMatch, takes_an_unclosed_bracket_and_a_last_backslash_as_they_stand) {
  EXPECT_TRUE(glob_match("a[b", "a[b"));
  EXPECT_FALSE(glob_match("a[b", "ab"));
  EXPECT_TRUE(glob_match("*[[", "x[["));
  EXPECT_TRUE(glob_match("a\\", "a\\"));
}

TEST(GlobMatch, quotes_with_a_backslash) {
  EXPECT_TRUE(glob_match("a\\*b", "a*b"));
  EXPECT_FALSE(glob_match("a\\*b", "aXb"));
  EXPECT_TRUE(glob_match("\\\\", "\\"));
  EXPECT_TRUE(glob_match("\\[a]", "[a]"));
}

TEST(GlobMatch, stays_fast_for_hostile_patterns) {
  std::string stars;
  for (int i = 0; i < 200; ++i) stars += "*a";
  const std::string text(20000, 'a');
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(glob_match(stars + "b", text));
  EXPECT_FALSE(glob_match("*" + std::string(300, '[') + "b", std::string(20000, '[')));
  EXPECT_FALSE(glob_match("*[a" + std::string(300, 'a') + "]b", text));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(HasGlob, sees_only_what_no_backslash_quotes) {
  EXPECT_TRUE(has_glob("a*"));
  EXPECT_TRUE(has_glob("?"));
  EXPECT_TRUE(has_glob("/lib/[ab]"));
  EXPECT_TRUE(has_glob("\\\\*"));
  EXPECT_FALSE(has_glob("a\\*b"));
  EXPECT_FALSE(has_glob("/usr/bin/python3.11"));
  EXPECT_FALSE(has_glob("trailing\\"));
}

struct ProbeText {
  const char* text;
  const char* target;
  const char* provider;
  const char* name;
};

class PatternForms : public testing::TestWithParam<ProbeText> {};

TEST_P(PatternForms, parse_and_come_back_from_their_own_text) {
  const ProbeText& expected = GetParam();
  const Result<ProbePattern> pattern = ProbePattern::parse(expected.text);
  ASSERT_TRUE(pattern) << expected.text << ": " << pattern.error().message;
  EXPECT_EQ(pattern->target, expected.target) << expected.text;
  EXPECT_EQ(pattern->provider, expected.provider) << expected.text;
  EXPECT_EQ(pattern->name, expected.name) << expected.text;
  const Result<ProbePattern> again = ProbePattern::parse(pattern->str());
  ASSERT_TRUE(again) << pattern->str();
  EXPECT_EQ(again->str(), pattern->str());
  EXPECT_EQ(again->target, pattern->target);
}

INSTANTIATE_TEST_SUITE_P(
    All, PatternForms,
    testing::Values(ProbeText{"usdt:/bin/x:python:gc__start", "/bin/x", "python", "gc__start"},
                    ProbeText{"/bin/x:python:gc__start", "/bin/x", "python", "gc__start"},
                    ProbeText{"python:gc__start", "", "python", "gc__start"},
                    ProbeText{"usdt:/bin/x:gc__start", "/bin/x", "*", "gc__start"},
                    ProbeText{"u:/bin/x:gc__start", "/bin/x", "*", "gc__start"},
                    ProbeText{"u:c:setjmp", "c", "*", "setjmp"}, ProbeText{"U:/bin/x:p:n", "/bin/x", "p", "n"},
                    ProbeText{"u:/bin/x:p:n", "/bin/x", "p", "n"}, ProbeText{"usdt:*:*", "*", "*", "*"},
                    ProbeText{"usdt:/a/*:p*:[a-z]?", "/a/*", "p*", "[a-z]?"}, ProbeText{"*:*", "", "*", "*"},
                    ProbeText{"usdt::p:n", "", "p", "n"}, ProbeText{":p:n", "", "p", "n"},
                    ProbeText{"usdt::n", "", "*", "n"}, ProbeText{"usdt:/with:colon:p:n", "/with:colon", "p", "n"},
                    ProbeText{"/with:two:colons:p:n", "/with:two:colons", "p", "n"},
                    // Two parts are always PROVIDER:NAME, so a provider may be called like a prefix.
                    ProbeText{"usdt:n", "", "usdt", "n"}, ProbeText{"u:n", "", "u", "n"},
                    ProbeText{"usdt:usdt:p:n", "usdt", "p", "n"},
                    // A quoted colon separates nothing.
                    ProbeText{"p:a\\:b", "", "p", "a\\:b"}, ProbeText{"/bin/x:p\\:q:n", "/bin/x", "p\\:q", "n"},
                    // Quotes hide everything in them, but only around a whole part.
                    ProbeText{"usdt:\"/a:b*\":p:n", "\"/a:b*\"", "p", "n"},
                    ProbeText{"\"/a\\\":b\":p:n", "\"/a\\\":b\"", "p", "n"},
                    ProbeText{"usdt:\"/a\":n", "\"/a\"", "*", "n"}, ProbeText{"\"a*\":\"b:c\"", "", "a\\*", "b\\:c"},
                    ProbeText{"/it\"s/x:p:n", "/it\"s/x", "p", "n"}, ProbeText{"\"/a\"b:p:n", "\"/a\"b", "p", "n"},
                    ProbeText{"p:a\\x2ab\\n", "", "p", "a\\*b\n"}));

struct Bad {
  const char* text;
  const char* message;
  std::uint32_t column;
};

class BadPatterns : public testing::TestWithParam<Bad> {};

TEST_P(BadPatterns, say_what_is_wrong_and_where) {
  const Result<ProbePattern> pattern = ProbePattern::parse(GetParam().text);
  ASSERT_FALSE(pattern) << GetParam().text;
  EXPECT_EQ(pattern.error().kind, ErrorKind::syntax);
  EXPECT_EQ(pattern.error().message, GetParam().message);
  EXPECT_EQ(pattern.error().column, GetParam().column);
}

INSTANTIATE_TEST_SUITE_P(All, BadPatterns,
                         testing::Values(Bad{"", "no ':' in '': write PROVIDER:NAME", 0},
                                         Bad{"malloc", "no ':' in 'malloc': write PROVIDER:NAME", 6},
                                         Bad{"a\\:b", "no ':' in 'a\\:b': write PROVIDER:NAME", 4},
                                         Bad{"p:", "empty probe name", 2}, Bad{"usdt:/x:p:", "empty probe name", 10},
                                         Bad{":n", "empty provider", 0}, Bad{"usdt:/x::n", "empty provider", 8}));

/// Texts made of every pair of characters that mean something somewhere, and of every byte.
std::vector<std::string> odd_texts() {
  std::vector<std::string> out = {"*",        "\"",       "\\",           "\"\"",        "a\xff\xfe",
                                  "\xc3\xbc", "\xc2\x9b", "\xe2\x80\xae", "\xed\xa0\x80"};
  constexpr std::string_view special = "\"\\:*?[]!-^$`'n x\n\t\x1b/";
  for (const char a : special)
    for (const char b : special) out.push_back({a, b});
  for (int byte = 1; byte < 256; ++byte) out.push_back({'a', static_cast<char>(byte), 'b'});
  return out;
}

TEST(Pattern, is_no_span) {
  for (const char* text : {"apm:request ~~ apm:response", "uprobe:./server:begin ~~ uprobe:./server:end"}) {
    const auto pattern = parse_pattern(text);
    ASSERT_FALSE(pattern) << text;
    EXPECT_EQ(pattern.error().kind, ErrorKind::not_supported) << text;
    EXPECT_NE(pattern.error().message.find("is a span"), std::string::npos) << pattern.error().message;
    EXPECT_EQ(pattern.error().column, std::string_view(text).find("~~"));
  }
  EXPECT_TRUE(parse_pattern("a [~]~ b:name")) << "a provider that is called so is meant by this";
  EXPECT_TRUE(parse_pattern("usdt:/tmp/a~~b:provider:name")) << "and a file";
}

TEST(Quotes, make_any_provider_and_name_a_pattern_that_means_it_alone) {
  for (const std::string& text : odd_texts()) {
    const std::string pasted = "usdt:/bin/x:" + quote_name(text) + ":" + quote_name(text);
    const Result<ProbePattern> pattern = ProbePattern::parse(pasted);
    ASSERT_TRUE(pattern) << pasted;
    EXPECT_EQ(pattern->target, "/bin/x") << pasted;
    for (const std::string& other : odd_texts()) {
      EXPECT_EQ(pattern->matches(other, "x"), false) << pasted;
      EXPECT_EQ(pattern->matches(other, other), other == text) << pasted << " and " << other;
    }
  }
}

TEST(Quotes, make_any_path_a_target_that_is_printable) {
  for (const std::string& text : odd_texts()) {
    const std::string path = "/tmp/" + text;
    const std::string pasted = "usdt:" + quote_target(path) + ":p:n";
    const Result<ProbePattern> pattern = ProbePattern::parse(pasted);
    ASSERT_TRUE(pattern) << pasted;
    EXPECT_EQ(pattern->provider + pattern->name, "pn") << pasted;
    EXPECT_EQ(unquoted(pattern->target).value_or(pattern->target), path) << pasted;
    for (const char c : pasted) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << pasted;
  }
  EXPECT_EQ(quote_target("/tmp/\xc2\x9b"), "\"/tmp/\\xc2\\x9b\"");
  EXPECT_EQ(quote_target("/tmp/a b\xff"), "\"/tmp/a b\\xff\"");
  EXPECT_EQ(quote_target("/usr/lib/libstdc++.so.6:\xc3\xbc"), "/usr/lib/libstdc++.so.6:\xc3\xbc");
}

TEST(ProbePattern, matches_provider_and_name_by_their_globs) {
  const Result<ProbePattern> pattern = ProbePattern::parse("usdt:/x:py*:gc__*");
  ASSERT_TRUE(pattern);
  EXPECT_TRUE(pattern->matches("python", "gc__start"));
  EXPECT_FALSE(pattern->matches("ruby", "gc__start"));
  EXPECT_FALSE(pattern->matches("python", "line"));
  EXPECT_TRUE(ProbePattern{}.matches("anything", "at all"));
}

}  // namespace
}  // namespace usdt
