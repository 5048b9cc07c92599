// SPDX-License-Identifier: BSD-2-Clause
// The layout of the stock program's counters; whether they count exactly, tests/live/event/processors_test.py says.
#include "event/site_counts.hpp"

#include <gtest/gtest.h>

#include <climits>

namespace usdt::event {
namespace {

constexpr std::size_t kMegabyte = 1u << 20;

std::size_t bytes(CountRows rows) { return std::size_t{rows.entries()} * sizeof(usdt_site_stats); }

TEST(CountRows, are_one_for_each_processor_of_ordinary_machines) {
  for (const auto& [processors, rows] : {std::pair{1L, 1U}, {2L, 2U}, {3L, 4U}, {64L, 64U}, {65L, 128U}})
    EXPECT_EQ(count_rows(1, processors).rows, rows) << processors;
}

TEST(CountRows, begin_on_cache_lines_of_their_own) {
  for (const std::size_t sites : {1, 3, 4, 5, 9999}) {
    const CountRows rows = count_rows(sites, 8);
    EXPECT_GE(rows.row_size, sites);
    EXPECT_EQ(rows.row_size * sizeof(usdt_site_stats) % 128, 0U) << sites;
  }
}

TEST(CountRows, are_a_power_of_two_whatever_number_of_processors_is_claimed) {
  for (const long processors : {LONG_MIN, -1L, 0L, 5L, 99'999L, LONG_MAX}) {
    const CountRows rows = count_rows(7, processors);
    ASSERT_GE(rows.rows, 1U) << processors;
    EXPECT_EQ(rows.rows & (rows.rows - 1), 0U) << processors;
    EXPECT_LE(rows.rows, 1024U) << processors;
  }
}

TEST(CountRows, get_fewer_rather_than_many_megabytes) {
  EXPECT_EQ(count_rows(40'000, 16).rows, 16U);
  EXPECT_LE(bytes(count_rows(50'000, 512)), 64 * kMegabyte);
  const CountRows many = count_rows(USDT_MAX_SITES, 512);
  EXPECT_EQ(many.rows, 1U);
  EXPECT_GE(many.row_size, std::uint32_t{USDT_MAX_SITES});
}

}  // namespace
}  // namespace usdt::event
