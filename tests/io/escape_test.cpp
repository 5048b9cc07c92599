// SPDX-License-Identifier: BSD-2-Clause
#include "io/escape.hpp"

#include <gtest/gtest.h>

#include <string>

namespace usdt::io {
namespace {

std::string json_of(std::string_view text) {
  fmt::memory_buffer out;
  append_json(out, text);
  return fmt::to_string(out);
}

TEST(Escape, text_of_any_language_passes) {
  for (const char* text : {"", "plain", "back\\slash \"quote\"", "caf\xc3\xa9", "\xe6\x97\xa5\xe6\x9c\xac",
                           "\xf0\x9f\x98\x80", "a no-break\xc2\xa0space"}) {
    EXPECT_TRUE(is_printable(text)) << text;
    EXPECT_EQ(printable(text), text);
    EXPECT_EQ(json_of(text), text);
  }
}

TEST(Escape, what_does_something_to_a_terminal_is_spelled_out) {
  const struct {
    const char* text;
    const char* shown;
    const char* json;
  } cases[] = {
      {"a\x7f", "a\\x7f", "a\\u007f"},
      {"\xc2\x80\xc2\x9b", "\\u0080\\u009b", "\\u0080\\u009b"},
      {"12345678\xe2\x80\xaegnp", "12345678\\u202egnp", "12345678\\u202egnp"},
      {"\xe2\x81\xa6\xe2\x81\xa9\xd8\x9c\xe2\x80\x8f", "\\u2066\\u2069\\u061c\\u200f", "\\u2066\\u2069\\u061c\\u200f"},
      {"\xe2\x80\xa8", "\\u2028", "\\u2028"},
      {"\x9b\x33\xc3", "\\x9b3\\xc3", "\xef\xbf\xbd\x33\xef\xbf\xbd"},
  };
  for (const auto& [text, shown, json] : cases) {
    EXPECT_FALSE(is_printable(text)) << shown;
    EXPECT_EQ(printable(text), shown);
    EXPECT_EQ(json_of(text), json);
  }
  EXPECT_EQ(printable("\x1b[2J\n\t\r"), "\\x1b[2J\\n\\t\\x0d");
}

TEST(Escape, what_was_made_safe_stays_as_it_is) {
  for (int byte = 1; byte < 256; ++byte) {
    const std::string once = printable(std::string(9, 'x') + static_cast<char>(byte));
    EXPECT_TRUE(is_printable(once)) << byte;
    EXPECT_EQ(printable(once), once);
  }
}

/// What others write of one of them is another one.
constexpr std::string_view kMark = "\xef\xbf\xbd", kMarked = "\xef\xbf\xbd\x66\x66";
constexpr std::string_view kTexts[] = {"\n",      "\\n",     "\\\\n", "\x1b", "\\x1b",    "\xff",
                                       "\\xff",   kMark,     kMarked, "\xe2", "\xe2\x80", "\xe2\x80\xa8",
                                       "\\u2028", {"\0", 1}, "\\x00", "\\",   "ff"};

TEST(Escape, no_two_texts_are_escaped_alike) {
  for (const std::string_view one : kTexts) {
    EXPECT_TRUE(is_printable(escaped(one))) << escaped(one);
    for (const std::string_view other : kTexts) EXPECT_EQ(escaped(one) == escaped(other), one == other) << escaped(one);
  }
  EXPECT_EQ(escaped("a\\b\n\xff"), "a\\\\b\\n\\xff");
}

TEST(Escape, utf8_keeps_the_text_and_marks_what_is_none) {
  for (const char* text :
       {"", "plain", "\x1b[2J\n\t\r\\n", "caf\xc3\xa9", "\xe2\x80\xa8\xc2\x9b", "\xf0\x9f\x98\x80"}) {
    EXPECT_TRUE(is_valid_utf8(text)) << text;
    EXPECT_EQ(valid_utf8(text), text);
  }
  const auto marked = [](std::initializer_list<const char*> bytes) {
    std::string text;
    for (const char* byte : bytes) text.append(kMark).append(byte);
    return text;
  };
  EXPECT_EQ(valid_utf8("a\xff\xe2\x80z"), "a" + marked({"ff", "e2", "80"}) + "z");
  EXPECT_EQ(valid_utf8({"a\0b", 3}), "a" + marked({"00"}) + "b");
  EXPECT_EQ(valid_utf8(kMark), marked({"ef", "bf", "bd"}));
  for (const std::string_view one : kTexts)
    for (const std::string_view other : kTexts)
      EXPECT_EQ(valid_utf8(one) == valid_utf8(other), one == other) << escaped(one);
}

TEST(Escape, quotes_end_where_the_text_does) {
  EXPECT_EQ(quoted("say \"hi\" \\ \x1b"), R"("say \"hi\" \\ \x1b")");
  EXPECT_EQ(quoted(""), "\"\"");
}

}  // namespace
}  // namespace usdt::io
