// SPDX-License-Identifier: BSD-2-Clause
#include "export/slice_lanes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace usdt::exports {
namespace {

TEST(SliceLane, TakesWhatLiesApartAndWhatIsAroundTheRest) {
  SliceLane lane;
  EXPECT_TRUE(lane.take(10, 20));
  EXPECT_TRUE(lane.take(30, 40));
  EXPECT_TRUE(lane.take(5, 50)) << "around both";
  EXPECT_TRUE(lane.take(60, 70));
  EXPECT_TRUE(lane.take(52, 58)) << "between, though it came later";
}

TEST(SliceLane, RefusesWhatCrosses) {
  SliceLane lane;
  ASSERT_TRUE(lane.take(10, 20));
  EXPECT_FALSE(lane.take(15, 25));
  EXPECT_FALSE(lane.take(5, 15));
  EXPECT_FALSE(lane.take(12, 18)) << "inside: what lies there already is not known any more";
}

TEST(SliceLane, EqualTimesAreTakenWhereTheOrderOfWritingNestsThem) {
  SliceLane lane;
  ASSERT_TRUE(lane.take(10, 20));
  EXPECT_FALSE(lane.take(10, 30)) << "its beginning would be behind that of the inner one";
  EXPECT_FALSE(lane.take(5, 10)) << "its end would be behind the other's beginning";
  EXPECT_TRUE(lane.take(5, 20)) << "the inner one ends first";
  EXPECT_TRUE(lane.take(20, 25)) << "the one before has ended";
}

/// Draws as viewers do: beginnings and ends by time, those of equal times as they were written; returns whether each
/// end is that of the innermost slice that is open.
bool nests(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& slices) {
  struct Edge {
    std::uint64_t time;
    std::size_t slice;
    bool begins;
  };
  std::vector<Edge> edges;
  for (std::size_t n = 0; n < slices.size(); ++n) {
    edges.push_back({slices[n].first, n, true});
    edges.push_back({slices[n].second, n, false});
  }
  std::ranges::stable_sort(edges, {}, &Edge::time);
  std::vector<std::size_t> open;
  for (const Edge& edge : edges) {
    if (edge.begins) {
      open.push_back(edge.slice);
    } else {
      if (open.back() != edge.slice) return false;
      open.pop_back();
    }
  }
  return true;
}

TEST(SliceLane, WhatItTakesNestsInAnyOrderAndNumber) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t span = round % 2 == 0 ? 60 : 200'000;
    SliceLane lane;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
    for (int n = 0; n < (round % 2 == 0 ? 300 : 5'000); ++n) {
      const std::uint64_t begin = random() % span;
      const std::uint64_t end = begin + random() % (span / 20);
      if (lane.take(begin, end)) taken.emplace_back(begin, end);
    }
    ASSERT_GE(taken.size(), 5U);
    ASSERT_TRUE(nests(taken)) << round;
  }
}

TEST(SliceLane, AThreadThatCallsOneAfterAnotherNeedsOneLaneHoweverLong) {
  SliceLane lane;
  for (std::uint64_t n = 0; n < 100'000; ++n) ASSERT_TRUE(lane.take(n * 10 + 1, n * 10 + 8));
  EXPECT_TRUE(lane.take(0, 2'000'000)) << "the function that called them all";
}

}  // namespace
}  // namespace usdt::exports
