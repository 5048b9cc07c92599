// SPDX-License-Identifier: BSD-2-Clause
#include "export/trends.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "export/table_output.hpp"
#include "io/width.hpp"

namespace usdt::exports {
namespace {

ArrangedRow row_of(std::uint64_t key, double per_second) {
  ArrangedRow row;
  row.keys = {key};
  row.per_second = per_second;
  return row;
}

TEST(Trends, ShowEachLookAsAPartOfTheRowsHighest) {
  Trends trends;
  for (const double rate : {0.0, 1.0, 2.0, 4.0, 8.0, 8.1, 16.0}) trends.look({row_of(1, rate), row_of(2, 1000)}, 1);
  EXPECT_EQ(trends.width(), 7U);
  EXPECT_EQ(trends.picture(row_of(1, 0), 1), " ▁▁▂▄▅█");
  EXPECT_EQ(trends.picture(row_of(2, 0), 1), "███████");
  EXPECT_EQ(trends.picture(row_of(3, 0), 1), "       ") << "a row that was never there";
}

TEST(Trends, AreOfTheLastLooksAlone) {
  Trends trends;
  trends.look({row_of(1, 1e6)}, 1);
  for (std::size_t n = 0; n < Trends::kMostLooks - 1; ++n) trends.look({row_of(1, 1)}, 1);
  EXPECT_TRUE(trends.picture(row_of(1, 0), 1).starts_with("█▁▁"));
  trends.look({row_of(1, 1)}, 1);
  EXPECT_EQ(io::width_of(trends.picture(row_of(1, 0), 1)), Trends::kMostLooks);
  EXPECT_TRUE(trends.picture(row_of(1, 0), 1).starts_with("██")) << "the highest one is too long ago";
  for (std::size_t n = 0; n < Trends::kMostLooks; ++n) trends.look({}, 1);
  EXPECT_EQ(trends.picture(row_of(1, 0), 1), std::string(Trends::kMostLooks, ' '));
}

TEST(TableLines, HaveTrendsWhereThereIsRoomForThem) {
  Trends trends;
  for (int n = 1; n <= 8; ++n) trends.look({row_of(7, n)}, 1);
  View view;
  view.question = std::make_shared<TableQuestion>();
  view.shown = {RowNumber::count};
  view.rates = true;
  const PlannedTable table{.keys = {{.label = "number", .type = ExpressionType::unsigned_integer}}};
  ArrangedRow row = row_of(7, 8);
  row.count = 36;
  const std::vector<ArrangedRow> rows{row};
  const AttachPlan plan;
  const auto lines = [&](std::size_t room) {
    return table_lines({view, plan, table, rows}, {.columns = room, .room = room, .trends = &trends});
  };
  EXPECT_EQ(lines(60),
            (std::vector<std::string>{"COUNT  PER SECOND  TREND     number", "   36        8.00  ▁▂▃▄▅▆▇█  7"}));
  EXPECT_EQ(lines(30), (std::vector<std::string>{"COUNT  PER SECOND  number", "   36        8.00  7"}));
}

TEST(TableLines, SayOfLiveTablesThatCountsAreOfAllAndRatesOfNow) {
  View view;
  view.question = std::make_shared<TableQuestion>();
  view.shown = {RowNumber::count};
  const PlannedTable table{.keys = {{.label = "number", .type = ExpressionType::unsigned_integer}}};
  const AttachPlan plan;
  ArrangedRow row = row_of(7, 8);
  row.count = 36;
  const auto heading = [&] { return table_lines({view, plan, table, {row}}, {.live = true}).front(); };
  EXPECT_EQ(heading(), "COUNT SO FAR  PER SECOND NOW  number");
  row.per_second.reset();
  EXPECT_EQ(heading(), "COUNT  number");
}

TEST(TableLines, HaveBarsByEighthsOfAColumn) {
  View view;
  view.question = std::make_shared<TableQuestion>();
  view.histogram = Histogram::log2;
  view.value = "x";
  PlannedTable table{.keys = {{.label = "x", .type = ExpressionType::signed_integer}}};
  ArrangedRow row;
  row.keys = {std::int64_t{1}};
  row.count = 1000;
  for (std::int64_t key = 1; key <= 4; ++key)
    row.bars.push_back({key, BucketRange(Bucket{key, key}),
                        key == 1   ? 1U
                        : key == 4 ? 800U
                                   : static_cast<std::uint64_t>(key) * 100});
  const std::vector<ArrangedRow> rows{row};
  const AttachPlan plan;
  const auto bars = [&](bool blocks) {
    std::vector<std::string> last;
    for (const std::string& line :
         table_lines({view, plan, table, rows}, {.columns = 20, .room = 20, .blocks = blocks}))
      last.push_back(line.substr(line.find_last_of(' ') + 1));
    return last;
  };
  const std::vector<std::string> blocks = bars(true), letters = bars(false);
  ASSERT_EQ(blocks.size(), 5U) << "a title, and four bars";
  EXPECT_EQ(blocks[1], "▏") << "a hit is something";
  EXPECT_EQ(io::width_of(blocks[4]), letters[4].size()) << "the longest has all of the room";
  EXPECT_EQ(blocks[2], "██▌") << "a quarter of 10 columns";
}

}  // namespace
}  // namespace usdt::exports
