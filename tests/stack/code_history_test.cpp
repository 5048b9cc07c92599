// SPDX-License-Identifier: BSD-2-Clause
#include "stack/code_history.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace usdt::stack {
namespace {

constexpr std::string_view kNames = "abcdefghijklmnopqrstuvwxyz";

CodeRange code(std::uint64_t start, std::uint64_t last, char name, Period made) {
  return {start, last, start, static_cast<std::uint32_t>(kNames.find(name)), 1, made};
}

/// "a": that was it; "?": it was one of several; "": there was none.
std::string at(const CodeHistory& history, std::uint64_t address, Period when) {
  const auto found = history.find(address, when, kNames);
  if (found.uncertain) return "?";
  return found.code == nullptr ? "" : std::string(kNames.substr(found.code->name, found.code->length));
}

TEST(CodeHistory, each_time_has_its_code) {
  CodeHistory history;
  history.put(code(0, 99, 'a', {0, 10}));
  history.put(code(50, 59, 'b', {20, 30}));
  history.put(code(50, 54, 'c', {40, 50}));
  EXPECT_EQ(at(history, 52, Period::at(15)), "a");
  EXPECT_EQ(at(history, 52, Period::at(25)), "?");
  EXPECT_EQ(at(history, 52, Period::at(35)), "b");
  EXPECT_EQ(at(history, 52, Period::at(45)), "?");
  EXPECT_EQ(at(history, 52, Period::at(50)), "c") << "it was found by a look at that time";
  EXPECT_EQ(at(history, 57, Period::at(99)), "b");
  EXPECT_EQ(at(history, 40, Period::at(25)), "a") << "what changed is elsewhere";
  EXPECT_EQ(at(history, 52, {15, 99}), "?") << "hits of a table are of a while";
}

TEST(CodeHistory, of_two_that_may_have_been_there_the_newer_comes_first) {
  CodeHistory history;
  history.put(code(0, 99, 'a', {0, 10}));
  history.put(code(50, 59, 'b', {20, 30}));
  const auto found = history.find(52, Period::at(25), kNames);
  ASSERT_TRUE(found.uncertain && found.code != nullptr && found.other != nullptr);
  EXPECT_EQ(kNames[found.code->name], 'b');
  EXPECT_EQ(kNames[found.other->name], 'a');
}

TEST(CodeHistory, where_nothing_was_before_code_is_known_at_once) {
  CodeHistory history;
  history.put(code(0, 9, 'a', {10, 20}));
  EXPECT_EQ(at(history, 5, Period::at(15)), "a");
  EXPECT_EQ(at(history, 5, Period::at(10)), "") << "it was looked at then, and there was none";
}

TEST(CodeHistory, what_is_left_of_doubtful_code_is_uncertain) {
  CodeHistory history;
  const CodeRange doubtful = code(0, 99, 'a', {0, 10});
  history.put(doubtful);
  history.put(code(50, 59, 'b', {20, 20}));
  history.doubt(doubtful);
  EXPECT_EQ(at(history, 40, Period::at(30)), "?");
  EXPECT_EQ(at(history, 70, Period::at(30)), "?");
  EXPECT_EQ(at(history, 52, Period::at(30)), "b");
}

TEST(CodeHistory, what_it_has_forgotten_is_uncertain) {
  CodeHistory history;
  for (std::uint64_t i = 0; i < 5000; ++i) history.put(code(0, 9, kNames[i % 26], {10 * i, 10 * i + 5}));
  EXPECT_EQ(at(history, 5, Period::at(10 * 4990 + 7)), std::string(1, kNames[4990 % 26]));
  EXPECT_EQ(at(history, 5, Period::at(17)), "?");
  EXPECT_EQ(at(history, 5, Period::at(90'000)), std::string(1, kNames[4999 % 26]));
}

/// Compares with a list of all codes for each address: the answer is the name that was there if only one can have been.
TEST(CodeHistory, no_answer_is_another_codes) {
  std::mt19937 random(20261130);
  for (int round = 0; round < 200; ++round) {
    CodeHistory history;
    struct Made {
      CodeRange range;
      std::uint64_t time;
    };
    std::vector<Made> all;
    std::uint64_t look = 0;
    for (std::uint64_t i = 0; i < 40; ++i) {
      const std::uint64_t next = look + random() % 10;  // several lines may come by one look
      const std::uint64_t time = look + (next > look ? 1 + random() % (next - look) : 0);
      const std::uint64_t start = random() % 40;
      if (next > look) all.push_back({code(start, start + random() % 30, kNames[random() % 26], {look, next}), time});
      if (next > look) history.put(all.back().range);
      look = next;
    }
    for (int query = 0; query < 200; ++query) {
      const std::uint64_t address = random() % 70, when = random() % (look + 5);
      char truth = 0;
      for (const Made& each : all)
        if (each.time <= when && each.range.start <= address && address <= each.range.last)
          truth = kNames[each.range.name];
      const std::string ours = at(history, address, Period::at(when));
      ASSERT_TRUE(truth == 0 || ours == "?" || ours == std::string(1, truth)) << address << " at " << when;
    }
  }
}

}  // namespace
}  // namespace usdt::stack
