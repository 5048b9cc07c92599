// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace usdt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A table whose keys are integers.
PlannedTable table_of(std::size_t keys) {
  PlannedTable table;
  table.keys.resize(keys);
  return table;
}

TableRow row_of(std::vector<TableKey> keys, std::uint64_t count, std::int64_t sum = 0) {
  return {.keys = std::move(keys), .count = count, .sum = sum, .maximum = sum};
}

TEST(View, is_of_events_where_nothing_else_is_asked_for) {
  const auto view = parse_view({});
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_EQ(view->question, nullptr);
  EXPECT_TRUE(view->shown.empty());
}

TEST(View, has_the_columns_that_are_asked_for) {
  const auto view = parse_view({.by = "comm, arg0", .sum = "arg1", .maximum = "arg1"});
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_EQ(view->question->keys.size(), 2U);
  EXPECT_THAT(view->shown, ElementsAre(RowNumber::count, RowNumber::sum, RowNumber::maximum));
  EXPECT_TRUE(view->question->extremes);
  EXPECT_FALSE(view->folds_last_key());
}

TEST(View, has_values_that_are_called_as_it_is_said) {
  const auto view = parse_view({.by = "arg0", .sum = "arg3 as us", .maximum = "arg3 as us"});
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_EQ(view->value, "us");
  EXPECT_EQ(view->question->value->text, "arg3");
  EXPECT_EQ(parse_view({.linear = "arg0 as size:0:4096:256"})->value, "size");
  EXPECT_EQ(parse_view({.by = "pid", .sum = "duration as took"})->is_about_durations(), true);
  EXPECT_THAT(parse_view({.sum = "arg3 as us", .maximum = "arg3"}, "--").error().message,
              StartsWith("--max arg3: one trace"));
  EXPECT_THAT(parse_view({.sum = "arg3 as took[us]"}, "--").error().message, HasSubstr("a name here and no meaning"));
}

TEST(View, has_longer_keys_only_where_there_are_keys) {
  EXPECT_EQ(parse_view({.by = "str(arg0)", .key_bytes = 400})->question->key_bytes, 400U);
  EXPECT_THAT(parse_view({.sum = "arg0", .key_bytes = 400}, "--").error().message,
              StartsWith("--key-size is of the keys"));
}

TEST(View, may_be_a_table_of_what_is_in_flight) {
  const auto view = parse_view({.by = "ustack", .sum = "w", .variance = "w * (w - size)", .in_flight = 20});
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_TRUE(view->makes_rows());
  EXPECT_EQ(view->question_of_hits(), nullptr) << "the kernel keeps beginnings, and no rows";
  EXPECT_EQ(view->top, 20U);
  EXPECT_EQ(view->slowest, 0U);
  EXPECT_THAT(view->shown, ElementsAre(RowNumber::count, RowNumber::sum, RowNumber::error));
  EXPECT_EQ(parse_view({.by = "pid", .top = 3, .in_flight = 20})->top, 3U);
  const auto growing = parse_view({.by = "pid", .in_flight = 5, .growth = true, .interval = 1});
  ASSERT_TRUE(growing) << growing.error().message;
  EXPECT_TRUE(growing->grows());
  EXPECT_FALSE(growing->rates) << "rows may become smaller";
}

TEST(View, refuses_errors_and_growth_of_what_has_none) {
  for (const ViewText& text :
       {ViewText{.by = "pid", .growth = true, .interval = 1}, ViewText{.in_flight = 5, .growth = true},
        ViewText{.by = "pid", .in_flight = 5, .growth = true},
        ViewText{.log2 = "size", .in_flight = 5, .growth = true, .interval = 1}})
    EXPECT_THAT(parse_view(text, "--").error().message, StartsWith("--growth is of the rows of what is in flight"));
  for (const ViewText& text :
       {ViewText{.by = "pid", .variance = "arg0"}, ViewText{.average = "arg1", .variance = "arg0"},
        ViewText{.sum = "arg1", .variance = "arg0", .log2 = "arg1"}})
    EXPECT_FALSE(parse_view(text));
  EXPECT_THAT(parse_view({.by = "pid", .rate = true, .in_flight = 5}, "--").error().message,
              StartsWith("--rate is of"));
  EXPECT_THAT(parse_view({.heat_map = "duration", .in_flight = 5}, "--").error().message,
              StartsWith("--in-flight shows"));
}

TEST(View, refuses_what_does_not_go_together_in_the_words_of_who_asks) {
  EXPECT_THAT(parse_view({.sum = "arg0", .average = "arg1"}, "--").error().message,
              StartsWith("--avg arg1: one trace"));
  EXPECT_THAT(parse_view({.sum = "arg0", .average = "arg1"}).error().message, StartsWith("avg arg1: one trace"));
  EXPECT_EQ(parse_view({.top = 3}).error().message, "top is about a table: see by, sum and hist");
  EXPECT_EQ(parse_view({.by = "comm", .slowest = 3}).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(parse_view({.by = "comm +"}).error().kind, ErrorKind::syntax);
  EXPECT_THAT(parse_view({.linear = "size:0:4096"}, "--").error().message, StartsWith("--lhist: it takes"));
}

TEST(ArrangeRows, puts_those_with_the_largest_number_first) {
  const auto view = parse_view({.by = "arg0", .sum = "arg1"});
  const std::vector<TableRow> rows{row_of({std::int64_t{1}}, 9, 5), row_of({std::int64_t{2}}, 1, 50)};
  const auto arranged = arrange_rows(*view, table_of(1), rows);
  ASSERT_EQ(arranged.size(), 2U);
  EXPECT_EQ(std::get<std::int64_t>(arranged[0].keys[0]), 2);
  EXPECT_EQ(decimal_text(arranged[1], RowNumber::count), "9");
}

TEST(ArrangeRows, puts_those_with_the_smallest_keys_first_where_the_view_says_so) {
  auto view = parse_view({.by = "arg0", .log2 = "arg1"});
  view->order = RowOrder::keys;
  const std::vector<TableRow> rows{row_of({std::int64_t{3}, std::int64_t{2}}, 9, 5),
                                   row_of({std::int64_t{-1}, std::int64_t{1}}, 1, 50),
                                   row_of({std::int64_t{3}, std::int64_t{0}}, 4, 7)};
  const auto arranged = arrange_rows(*view, table_of(2), rows);
  ASSERT_EQ(arranged.size(), 2U);
  EXPECT_EQ(std::get<std::int64_t>(arranged[0].keys[0]), -1);
  EXPECT_EQ(arranged[1].count, 13U);
  EXPECT_EQ(decimal_text(arranged[1], RowNumber::sum), "12") << "beside the histogram";
  ASSERT_EQ(arranged[1].bars.size(), 2U);
  EXPECT_EQ(arranged[1].bars[0].count, 4U);
}

TEST(ArrangeRows, counts_the_values_of_the_key_that_it_folds) {
  const auto view = parse_view({.by = "arg0", .distinct = "arg1"});
  ASSERT_TRUE(view) << view.error().message;
  const std::vector<TableRow> rows{row_of({std::int64_t{1}, TableText{"a"}}, 2),
                                   row_of({std::int64_t{1}, TableText{"b"}}, 3)};
  const auto arranged = arrange_rows(*view, table_of(2), rows);
  ASSERT_EQ(arranged.size(), 1U);
  EXPECT_EQ(arranged[0].count, 5U);
  EXPECT_EQ(arranged[0].distinct, 2U);
}

TEST(ArrangeRows, has_percentiles_of_durations_at_most_a_sixteenth_too_large) {
  const auto view = parse_view({.latency = true});
  ASSERT_TRUE(view) << view.error().message;
  std::vector<TableRow> rows;
  for (std::int64_t key = 0; key < 16; ++key) rows.push_back(row_of({key}, 1, key));  // each number its own bucket
  const auto arranged = arrange_rows(*view, table_of(1), rows);
  ASSERT_EQ(arranged.size(), 1U);
  EXPECT_EQ(arranged[0].bars.size(), 16U);
  EXPECT_EQ(arranged[0].percentile(500), 7);
  EXPECT_EQ(arranged[0].integer(RowNumber::p999), 15);
}

TEST(ArrangeRows, has_bars_of_numbers_with_a_sign_and_without) {
  const auto view = parse_view({.linear = "arg0:0:1000:100"});
  ASSERT_TRUE(view) << view.error().message;
  const Bucket second = Bucket::linear(2, 0, 1000, 100);
  for (const TableKey& key : {TableKey(std::int64_t{2}), TableKey(std::uint64_t{2})}) {
    const auto arranged = arrange_rows(*view, table_of(1), {row_of({key}, 3)});
    ASSERT_EQ(arranged.size(), 1U);
    ASSERT_EQ(arranged[0].bars.size(), 1U);
    EXPECT_EQ(arranged[0].bars[0].count, 3U);
    EXPECT_EQ(std::get<Bucket>(arranged[0].bars[0].range).first, second.first);
  }
}

TEST(DecimalText, has_one_decimal_of_averages_that_are_not_whole) {
  ArrangedRow row;
  row.count = 3;
  row.sum = -10;
  EXPECT_EQ(decimal_text(row, RowNumber::average), "-3.3");
  row.sum = 9;
  EXPECT_EQ(decimal_text(row, RowNumber::average), "3");
}

TEST(HeatSlicer, cuts_what_came_since_the_cut_before) {
  HeatSlicer slicer(100);
  const PlannedTable table = table_of(1);
  static_cast<void>(slicer.cut(table, {row_of({std::int64_t{4}}, 2)}, 200));
  const HeatSlice slice = slicer.cut(table, {row_of({std::int64_t{4}}, 5), row_of({std::int64_t{6}}, 1)}, 300);
  EXPECT_EQ(slice.from, 200);
  EXPECT_THAT(slice.counts, ElementsAre(std::pair(4, 3U), std::pair(6, 1U)));
}

TEST(HeatMap, joins_neighbours_where_there_are_too_many) {
  HeatMap map;
  for (std::int64_t n = 0; n < 5000; ++n) map.add({.from = n, .to = n + 1, .counts = {{0, 1}}});
  EXPECT_LT(map.slices().size(), 4097U);
  std::uint64_t hits = 0;
  for (const HeatSlice& slice : map.slices()) hits += slice.counts.at(0);
  EXPECT_EQ(hits, 5000U);
}

TEST(HitRates, are_of_the_time_between_two_looks) {
  const auto view = parse_view({.by = "arg0", .interval = 1});
  HitRates rates;
  const HitRates::Clock::time_point began;
  rates.begin(began);
  rates.look(*view, {row_of({std::int64_t{1}}, 10)}, began + std::chrono::seconds(1), false);
  rates.look(*view, {row_of({std::int64_t{1}}, 30)}, began + std::chrono::seconds(3), false);
  EXPECT_DOUBLE_EQ(rates.of({std::int64_t{1}}), 10);
  rates.look(*view, {row_of({std::int64_t{1}}, 30)}, began + std::chrono::seconds(3), true);
  EXPECT_DOUBLE_EQ(rates.of({std::int64_t{1}}), 10);
}

TEST(RowGrowth, is_since_the_look_before_and_at_the_end_since_the_first) {
  const auto view = parse_view({.by = "arg0", .sum = "arg1", .in_flight = 5, .growth = true, .interval = 1});
  PlannedTable table = table_of(1);
  table.value = ExpressionType::unsigned_integer;
  RowGrowth growth;
  const auto grown = [&](std::int64_t first, std::int64_t second) {
    const std::vector<TableRow> rows{row_of({std::int64_t{1}}, 1, first), row_of({std::int64_t{2}}, 1, second)};
    const auto arranged = arrange_rows(*view, table, rows, nullptr, &growth);
    growth.keep(arranged);
    std::vector<std::pair<std::int64_t, std::int64_t>> by_key;
    for (const ArrangedRow& row : arranged)
      by_key.emplace_back(std::get<std::int64_t>(row.keys[0]),
                          static_cast<std::int64_t>(row.integer(RowNumber::growth)));
    return by_key;
  };
  using Grown = std::vector<std::pair<std::int64_t, std::int64_t>>;
  EXPECT_EQ(grown(100, 7), (Grown{{1, 100}, {2, 7}})) << "from nothing";
  EXPECT_EQ(grown(90, 12), (Grown{{2, 5}, {1, -10}})) << "what grew most comes first";
  EXPECT_EQ(grown(95, 12), (Grown{{1, 5}, {2, 0}}));
  growth.begin_at_first();
  EXPECT_EQ(grown(95, 20), (Grown{{2, 13}, {1, -5}}));
}

TEST(ArrangeRows, have_the_root_of_the_variances_of_what_they_are_made_of) {
  const auto view = parse_view({.by = "arg0", .sum = "arg1", .variance = "arg2", .in_flight = 5});
  TableRow row = row_of({std::int64_t{1}}, 2, 5);
  row.variance = 9;
  TableRow other = row;
  other.variance = 16;
  row.add(other);
  const auto arranged = arrange_rows(*view, table_of(1), {row});
  EXPECT_EQ(decimal_text(arranged[0], RowNumber::error), "5");
}

}  // namespace
}  // namespace usdt
