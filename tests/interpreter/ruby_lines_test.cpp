// SPDX-License-Identifier: BSD-2-Clause
// Which line an instruction of Ruby has, by sets that a test makes as Ruby does.
#include "interpreter/ruby_lines.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace usdt::interpreter {
namespace {

/// How many of the positions are at `position` or before it.
std::uint32_t counted(const std::vector<std::uint64_t>& positions, std::uint64_t position) {
  return static_cast<std::uint32_t>(std::ranges::count_if(positions, [&](std::uint64_t p) { return p <= position; }));
}

/// The set of a function of `count` instructions, whose entries begin at `positions`: ranks of 7 bits, 9 in a word, of
/// the first 54; then for each 512 the rank before them, those before each 64 in 9 bits, and a bit for each.
std::vector<std::uint64_t> make_set(const std::vector<std::uint64_t>& positions, std::uint64_t count) {
  std::vector<std::uint64_t> set(6);
  for (std::uint64_t p = 0; p < 54; ++p) set[p / 9] |= std::uint64_t{counted(positions, p)} << p % 9 * 7;
  for (std::uint64_t first = 54; first < count; first += 512) {
    const std::uint64_t before = counted(positions, first - 1);
    std::vector<std::uint64_t> block(10);
    block[0] = before;
    for (std::uint64_t word = 1; word < 8; ++word)
      block[1] |= (counted(positions, first + 64 * word - 1) - before) << 9 * (word - 1);
    for (const std::uint64_t p : positions)
      if (p >= first && p < first + 512) block[2 + (p - first) / 64] |= std::uint64_t{1} << (p - first) % 64;
    set.insert(set.end(), block.begin(), block.end());
  }
  return set;
}

TEST(RubyLines, are_counted_up_to_a_position) {
  std::mt19937_64 random(7);
  for (const std::uint64_t count : {1U, 53U, 54U, 55U, 118U, 566U, 567U, 3000U}) {
    std::vector<std::uint64_t> positions{0};
    for (std::uint64_t p = 1; p < count; ++p)
      if (random() % 3 == 0) positions.push_back(p);
    const auto set = make_set(positions, count);
    ASSERT_EQ(set.size(), words_of_ranks(count)) << count;
    for (std::uint64_t p = 0; p < count; ++p) ASSERT_EQ(rank_of(set, p), counted(positions, p)) << p << " of " << count;
  }
}

TEST(RubyLines, of_a_position_that_the_set_does_not_have_are_none) {
  const auto set = make_set({0, 5, 60}, 100);
  EXPECT_EQ(rank_of(set, 99), 3U);
  EXPECT_EQ(rank_of(set, 54 + 512), 0U);
  EXPECT_EQ(rank_of(set, UINT64_MAX), 0U);
  EXPECT_EQ(rank_of({}, 0), 0U);
}

}  // namespace
}  // namespace usdt::interpreter
