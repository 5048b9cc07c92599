// SPDX-License-Identifier: BSD-2-Clause
#include "export/report_fold.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "export/stack_tree.hpp"

namespace usdt::exports::report {
namespace {

TEST(NumberCounts, PercentilesAreAtMostASixteenthAboveTheTrueOnes) {
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> numbers;
  NumberCounts counts;
  for (int n = 0; n < 20'000; ++n) {
    const std::uint64_t number = random() >> (random() % 60);
    numbers.push_back(number);
    counts.add({number, false});
  }
  std::ranges::sort(numbers);
  const ArrangedRow row = counts.row();
  for (const unsigned permille : {1U, 500U, 900U, 990U, 999U, 1000U}) {
    const Int128 exact = numbers[(numbers.size() * permille + 999) / 1000 - 1];
    EXPECT_GE(row.percentile(permille), exact) << permille;
    EXPECT_LE(row.percentile(permille), exact + exact / 16) << permille;
  }
}

TEST(NumberCounts, SumsCountsAndExtremesAreExactOfBothSignsAndBothSizes) {
  NumberCounts counts, others;
  counts.add({static_cast<std::uint64_t>(-5), true});
  counts.add({UINT64_MAX, false});
  others.add({UINT64_MAX, false});
  counts.add(others);
  const ArrangedRow row = counts.row();
  EXPECT_EQ(decimal_text(row.sum), "36893488147419103225");
  EXPECT_EQ(decimal_text(row.minimum), "-5");
  EXPECT_EQ(decimal_text(row.maximum), "18446744073709551615");
  EXPECT_EQ(row.count, 3U);
  ASSERT_EQ(row.bars.size(), 2U);
  EXPECT_EQ(row.bars[1].count, 2U);
}

std::uint64_t total_of(const HeatGrid& grid) {
  std::uint64_t total = 0;
  for (const auto& [column, rows] : grid.columns())
    for (const auto& [row, count] : rows) total += count;
  return total;
}

TEST(HeatGrid, EveryEventIsInTheColumnOfItsTimeHoweverLongTheTraceGrows) {
  HeatGrid grid(16);
  std::map<std::uint64_t, std::uint64_t> times;
  for (std::uint64_t n = 0; n < 10'000; ++n) {
    const std::uint64_t time = 1'000'000 + n * n * 7;
    grid.add(time, 3);
    ++times[time];
  }
  EXPECT_LE(grid.columns().size(), 16U);
  EXPECT_EQ(total_of(grid), 10'000U);
  for (const auto& [column, rows] : grid.columns()) {
    std::uint64_t within = 0;
    for (auto each = times.lower_bound(column * grid.step());
         each != times.end() && each->first < (column + 1) * grid.step(); ++each)
      within += each->second;
    EXPECT_EQ(rows.at(3), within);
  }
}

TEST(HeatGrid, TimesMayComeInAnyOrder) {
  HeatGrid grid(4);
  for (const std::uint64_t time : {1000, 10, 500, 999, 11}) grid.add(time, 0);
  EXPECT_EQ(grid.step(), 256U);
  ASSERT_EQ(grid.columns().size(), 3U);
  EXPECT_EQ(grid.columns().at(0).at(0), 2U);
  EXPECT_EQ(grid.columns().at(3).at(0), 2U);
}

KeptSpan span_at(std::uint64_t begin, std::uint64_t duration, std::uint32_t thread) {
  return {.begin = begin, .duration = duration, .thread = thread, .values = std::to_string(begin)};
}

TEST(KeptSpans, AllAreKeptInTheOrderOfTimeWhileThereIsRoom) {
  KeptSpans spans(100);
  for (std::uint64_t n = 100; n > 0; --n) spans.add(span_at(n, 1, 0));
  const std::vector<KeptSpan> kept = spans.take();
  ASSERT_EQ(kept.size(), 100U);
  EXPECT_EQ(spans.added(), 100U);
  EXPECT_TRUE(std::ranges::is_sorted(kept, {}, &KeptSpan::begin));
}

TEST(KeptSpans, TheLongestOfEachThreadAndTimeStayWithTheirValues) {
  constexpr std::size_t kMost = 4000;
  KeptSpans spans(kMost);
  std::set<std::uint64_t> unusual;
  for (std::uint64_t n = 0; n < 300'000; ++n) {
    const bool is_unusual = n % 1999 == 7;
    spans.add(span_at(n * 100, is_unusual ? 1'000'000 + n : n % 50, static_cast<std::uint32_t>(n % 3)));
    if (is_unusual) unusual.insert(n * 100);
  }
  const std::vector<KeptSpan> kept = spans.take();
  EXPECT_EQ(spans.added(), 300'000U);
  EXPECT_LE(kept.size(), kMost);
  EXPECT_GE(kept.size(), kMost / 8);
  std::map<std::uint32_t, std::vector<std::uint64_t>> tenths;
  for (const KeptSpan& span : kept) {
    unusual.erase(span.begin);
    EXPECT_EQ(span.values, std::to_string(span.begin));
    std::vector<std::uint64_t>& of_thread = tenths[span.thread];
    of_thread.resize(10);
    ++of_thread[span.begin / 3'000'000];
  }
  EXPECT_TRUE(unusual.empty()) << unusual.size() << " of the longest are gone";
  ASSERT_EQ(tenths.size(), 3U);
  for (const auto& [thread, counts] : tenths)
    EXPECT_GT(*std::ranges::min_element(counts) * 4, *std::ranges::max_element(counts)) << "some part has too few";
}

TEST(KeptSpans, MoreThreadsThanRoomLeaveTheLongest) {
  KeptSpans spans(64);
  for (std::uint32_t n = 0; n < 10'000; ++n) spans.add(span_at(5, n, n));
  const std::vector<KeptSpan> kept = spans.take();
  EXPECT_LE(kept.size(), 64U);
  EXPECT_EQ(kept.front().duration, 9'999U);
}

TEST(TextCounts, WhatIsCountedApartIsExactAndTheRestIsCountedTogether) {
  TextCounts counts(2);
  for (const char* text : {"b", "a", "b", "c", "d", "b", "a"}) counts.add(text, 10);
  const auto ranked = counts.ranked();
  ASSERT_EQ(ranked.size(), 2U);
  EXPECT_EQ(ranked[0].first, "b");
  EXPECT_EQ(ranked[0].second.count, 3U);
  EXPECT_EQ(ranked[1].second.count, 2U);
  EXPECT_EQ(counts.others().count, 2U);
  EXPECT_EQ(decimal_text(counts.others().duration), "20");
}

std::string written(const StackTree& tree) {
  rapidjson::StringBuffer text;
  io::JsonWriter json(text);
  json.StartObject();
  tree.write(json);
  json.EndObject();
  return {text.GetString(), text.GetSize()};
}

TEST(StackTree, StacksWithACommonBeginningShareIt) {
  StackTree tree;
  tree.add("main;a", "3");
  tree.add("main;b;a", "4");
  EXPECT_EQ(written(tree), R"({"names":["all","main","a","b"],"names_of":[0,1,2,3,2],"parents":[0,0,1,1,3],)"
                           R"("counts":[0,0,3,0,4]})");
}

TEST(StackTree, FoldedFramesAreInTheirPlacesAndTheSumStays) {
  StackTree tree;
  tree.add("main;wide", "100");
  for (int n = 0; n < 20; ++n) tree.add("main;narrow;leaf" + std::to_string(n), "1");
  EXPECT_EQ(tree.fold(100), 0U) << "there is room for all";
  EXPECT_EQ(tree.fold(4), 20U);
  EXPECT_EQ(written(tree), R"({"names":["all","main","wide","narrow","[folded]"],"names_of":[0,1,2,3,4],)"
                           R"("parents":[0,0,1,1,3],"counts":[0,0,100,0,20]})");
}

}  // namespace
}  // namespace usdt::exports::report
