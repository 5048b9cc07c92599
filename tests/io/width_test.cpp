// SPDX-License-Identifier: BSD-2-Clause
#include "io/width.hpp"

#include <gtest/gtest.h>

#include <string>

#include "io/stream.hpp"

namespace usdt::io {
namespace {

constexpr const char* kWide = "\xe6\x97\xa5\xe6\x9c\xac";  // two characters of two columns each
constexpr const char* kCombining = "e\xcc\x81t";           // an accent of its own above the first letter

TEST(Width, columns_are_those_of_a_terminal_and_not_bytes) {
  EXPECT_EQ(width_of(""), 0U);
  EXPECT_EQ(width_of("plain"), 5U);
  EXPECT_EQ(width_of("caf\xc3\xa9"), 4U);
  EXPECT_EQ(width_of(kWide), 4U);
  EXPECT_EQ(width_of(kCombining), 2U);
  EXPECT_EQ(width_of("\xf0\x9f\x98\x80"), 2U);
  EXPECT_EQ(shown_width("\n"), 2U);
}

TEST(Width, padding_is_counted_in_columns) {
  EXPECT_EQ(padded(kWide, 6), std::string(kWide) + "  ");
  EXPECT_EQ(padded(kCombining, 3), std::string(kCombining) + " ");
  EXPECT_EQ(padded("longer", 3), "longer");
  EXPECT_EQ(fmt::format("{:<4}|", Foreign{kCombining}), std::string(kCombining) + "  |");
  EXPECT_EQ(fmt::format("{:>{}}|", Styled{kWide, Style::plain}, 5), ' ' + std::string(kWide) + "|");
}

TEST(Width, what_is_too_long_keeps_both_ends_and_has_a_mark) {
  EXPECT_EQ(shortened("0123456789", 10), "0123456789");
  EXPECT_EQ(shortened("0123456789", 9), "012...789");
  EXPECT_EQ(shortened("0123456789", 8), "012...89");
  EXPECT_EQ(shortened("0123456789", 2), "..");
  EXPECT_EQ(shortened("0123456789", 0), "");
}

TEST(Width, neither_a_character_nor_an_escape_is_torn_apart) {
  const std::string texts[] = {std::string(kWide) + kWide + kWide + kWide, "\\x1b\\x1b\\u202e\\x9b\\\"\\\\\\n",
                               std::string(kCombining) + kCombining + kCombining + kCombining};
  for (const std::string& text : texts) {
    for (std::size_t width = 0; width <= width_of(text); ++width) {
      const std::string cut = shortened(text, width);
      EXPECT_LE(width_of(cut), width) << text;
      const std::size_t mark = cut.find("...");
      if (mark == cut.npos) continue;
      std::string begin;
      while (begin.size() < mark) begin += text.substr(begin.size(), first_unit(text.substr(begin.size())).bytes);
      EXPECT_EQ(begin, cut.substr(0, mark));
      std::string_view rest = text;
      while (rest.size() > cut.size() - mark - 3) rest.remove_prefix(first_unit(rest).bytes);
      EXPECT_EQ(rest, cut.substr(mark + 3));
    }
  }
}

}  // namespace
}  // namespace usdt::io
