// SPDX-License-Identifier: BSD-2-Clause
#include "export/heat_picture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace usdt::exports {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

/// The lines of a map of so many seconds, with a hit in each.
std::vector<std::string> lines_of(int seconds) {
  HeatMap map;
  for (int n = 0; n < seconds; ++n) map.add({.from = n * kSecond, .to = (n + 1) * kSecond, .counts = {{3, 1}}});
  View view;
  view.value = "size";
  view.interval = 1;
  std::vector<std::string> lines;
  for (const auto& parts : draw(map, view, {.width = 80, .to = seconds * kSecond})) {
    std::string& line = lines.emplace_back();
    for (const HeatPart& part : parts) line += part.text;
  }
  return lines;
}

TEST(HeatPicture, has_its_times_below_the_columns_that_they_are_of) {
  const auto lines = lines_of(30);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[2].size(), lines[1].size()) << "the last time ends below the last column";
  EXPECT_THAT(lines[2], ::testing::MatchesRegex(" +..:..:.. +..:..:.."));
}

TEST(HeatPicture, says_in_words_from_when_to_when_it_is_where_no_column_is_below_a_time) {
  for (const int seconds : {1, 2, 16}) {
    const auto lines = lines_of(seconds);
    ASSERT_EQ(lines.size(), 4U);
    EXPECT_THAT(lines[2], ::testing::MatchesRegex(" +..:..:.. to ..:..:..")) << seconds;
  }
}

}  // namespace
}  // namespace usdt::exports
