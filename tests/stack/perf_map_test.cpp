// SPDX-License-Identifier: BSD-2-Clause
#include "stack/perf_map.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "usdt/clock.hpp"

namespace usdt::stack {
namespace {

/// What a whole map says, read at one time.
struct Parsed {
  explicit Parsed(std::string_view map) : text(map) { rest = add_lines(text, 0, Period::at(1), lines, history); }
  /// The name of the code that was at `address`; empty: there was none.
  [[nodiscard]] std::string name_at(std::uint64_t address) const {
    const CodeHistory::Found found = history.find(address, Period::at(2), text);
    return found.code == nullptr ? "" : std::string(text.substr(found.code->name, found.code->length));
  }
  std::string_view text;
  std::size_t lines = 0;
  CodeHistory history;
  std::optional<std::size_t> rest;
};

std::string name_at(std::string_view text, std::uint64_t address) { return Parsed(text).name_at(address); }

TEST(PerfMap, a_line_names_its_range) {
  const std::string_view text = "7f0000001000 20 LazyCompile:~made it.js:3\n7f0000001020 8 Builtin:add\n";
  EXPECT_EQ(name_at(text, 0x7f0000000fff), "");
  EXPECT_EQ(name_at(text, 0x7f0000001000), "LazyCompile:~made it.js:3");
  EXPECT_EQ(name_at(text, 0x7f000000101f), "LazyCompile:~made it.js:3");
  EXPECT_EQ(name_at(text, 0x7f0000001020), "Builtin:add");
  EXPECT_EQ(name_at(text, 0x7f0000001028), "");
}

TEST(PerfMap, of_code_that_took_the_place_of_other_code_the_later_line_counts) {
  const std::string_view text = "1000 100 first\n1000 80 second\n2000 10 last\n1040 10 within\n";
  EXPECT_EQ(name_at(text, 0x1000), "second");
  EXPECT_EQ(name_at(text, 0x1048), "within");
  EXPECT_EQ(name_at(text, 0x1050), "second");
  EXPECT_EQ(name_at(text, 0x1090), "first");
}

TEST(PerfMap, of_all_addresses_the_last_line_that_has_them_counts_whatever_was_there_before) {
  std::mt19937 random(20261126);
  std::string text;
  std::vector<std::uint32_t> line_of(4096, 0);  // as written, address by address
  for (std::uint32_t line = 1; line <= 400; ++line) {
    const std::uint64_t start = random() % 4000;
    const std::uint64_t size = 1 + random() % (line % 5 == 0 ? 2000 : 30);
    text += fmt::format("{:x} {:x} {}\n", start, size, line);
    for (std::uint64_t at = start; at < std::min<std::uint64_t>(start + size, 4096); ++at) line_of[at] = line;
  }
  const Parsed parsed(text);
  for (std::uint32_t at = 0; at < line_of.size(); ++at)
    ASSERT_EQ(parsed.name_at(at), line_of[at] == 0 ? "" : std::to_string(line_of[at])) << at;
}

TEST(PerfMap, a_function_that_took_the_place_of_a_thousand_smaller_ones_is_found_in_all_of_it) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += fmt::format("{:x} 40 old{}\n", 0x1000 + 0x40 * i, i);
  text += fmt::format("1000 {:x} new\n", 0x40 * 1000);
  const Parsed parsed(text);
  EXPECT_EQ(parsed.history.size(), 1U);
  EXPECT_EQ(parsed.name_at(0x1000), "new");
  EXPECT_EQ(parsed.name_at(0x1000 + 0x40 * 999), "new");
  const auto last = parsed.history.find(0x1000 + 0x40 * 999, Period::at(2), text);
  EXPECT_EQ(last.code->code, 0x1000U) << "what distances count from";
}

TEST(PerfMap, lines_of_another_form_are_passed_over) {
  const std::string_view text =
      "\n \n1000\n1000 \n1000 10\n1000 10 \n0x2000 0x10 with prefixes\nzz 10 a\n3000 zz b\n-1 5 c\n"
      "10000000000000000 5 too wide\n4000 0 empty\n5000 10 name\n";
  EXPECT_EQ(Parsed(text).history.size(), 2U);
  EXPECT_EQ(name_at(text, 0x2008), "with prefixes");
  EXPECT_EQ(name_at(text, 0x5008), "name");
}

TEST(PerfMap, a_line_without_its_end_waits_for_it) {
  const std::string_view text = "1000 10 whole\n2000 10 ha";
  const Parsed parsed(text);
  EXPECT_EQ(parsed.rest, text.find("2000"));
  EXPECT_EQ(parsed.name_at(0x2008), "");
}

TEST(PerfMap, ranges_that_wrap_and_names_that_do_not_end_do_no_harm) {
  const std::string text = "fffffffffffffff0 ffffffffffffffff all\n1000 10 " + std::string(100'000, 'x') + "\n";
  EXPECT_EQ(name_at(text, 0xfffffffffffffff8), "all");
  EXPECT_EQ(name_at(text, 0x1008).size(), 1024U);
  EXPECT_EQ(name_at(text, 0x10), "");
}

TEST(PerfMap, more_lines_than_a_map_may_have_are_refused) {
  std::string text;
  for (std::size_t i = 0; i < kMostPerfMapLines; ++i) text += fmt::format("{:x} 8 a\n", 8 * i);
  EXPECT_TRUE(Parsed(text).rest);
  text += "8 8 one more\n";
  EXPECT_FALSE(Parsed(text).rest) << "names that are read of a part of it may have been replaced in the rest";
}

/// The map of this process, as if it had a /tmp of its own.
class OfThisProcess : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "perf-map-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root = name;
    std::filesystem::create_directories(root / "root" / "tmp");
    for (const char* file : {"status", "stat"})
      std::ofstream(root / file) << std::ifstream(std::filesystem::path("/proc/self") / file).rdbuf();
    path = root / "root" / "tmp" / fmt::format("perf-{}.map", ::getpid());
  }
  void TearDown() override { std::filesystem::remove_all(root); }

  void append(std::string_view text) const { std::ofstream(path, std::ios::app) << text; }
  /// Waits until times of files tell what was written from what comes now.
  static void wait_for_ticks() { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }
  static std::string name_of(const std::optional<PerfMap::Found>& found) {
    if (!found) return "none";
    return std::string(found->name) + (found->uncertain ? fmt::format(" or {}", found->other) : "");
  }
  [[nodiscard]] static std::string name_at(PerfMap& map, std::uint64_t address, std::uint64_t time) {
    return name_of(map.find(address, Period::at(time)));
  }

  std::filesystem::path root, path;
};

TEST_F(OfThisProcess, what_was_appended_is_read_for_the_first_hit_behind_it) {
  PerfMap map(root.string());
  append("1000 10 first\n2000 10 unend");
  EXPECT_EQ(name_at(map, 0x1008, event_clock()), "first");
  EXPECT_EQ(name_at(map, 0x2008, event_clock()), "none");
  append("ed\n3000 10 third\n");
  EXPECT_EQ(name_at(map, 0x2008, event_clock()), "unended");
  EXPECT_EQ(name_at(map, 0x3008, event_clock()), "third");
}

TEST_F(OfThisProcess, a_hit_has_the_name_that_was_there_at_its_time) {
  PerfMap map(root.string());
  append("1000 10 old\n");
  map.look(event_clock());
  const std::uint64_t before = event_clock();
  map.look(event_clock());
  append("1000 10 new\n");
  const std::uint64_t between = event_clock();
  wait_for_ticks();
  EXPECT_EQ(name_at(map, 0x1008, event_clock()), "new") << "the line was there before it";
  EXPECT_EQ(name_at(map, 0x1008, before), "old");
  EXPECT_EQ(name_at(map, 0x1008, between), "new or old") << "nobody looked between the line and the next hit";
}

TEST_F(OfThisProcess, a_line_as_it_was_before_makes_nothing_uncertain) {
  PerfMap map(root.string());
  append("1000 10 same\n");
  map.look(event_clock());
  append("1000 10 same\n2000 10 other\n");
  const std::uint64_t between = event_clock();
  EXPECT_EQ(name_at(map, 0x2008, event_clock()), "other");
  EXPECT_EQ(name_at(map, 0x1008, between), "same");
}

TEST_F(OfThisProcess, a_map_that_rested_for_a_while_is_certain_at_the_first_look) {
  append("1000 10 old\n1000 10 new\n");
  wait_for_ticks();
  PerfMap map(root.string());
  EXPECT_EQ(name_at(map, 0x1008, event_clock()), "new");
}

TEST_F(OfThisProcess, a_map_that_was_written_anew_has_none_of_the_old_names) {
  PerfMap map(root.string());
  append("1000 10 first\n2000 10 second\n");
  EXPECT_EQ(name_at(map, 0x2008, event_clock()), "second");
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  std::ofstream(path) << "1000 10 other one\n2800 10 and more\n";  // of the same inode, and longer
  EXPECT_EQ(name_at(map, 0x2008, event_clock()), "none");
  EXPECT_EQ(name_at(map, 0x1008, event_clock()), "other one");
}

TEST_F(OfThisProcess, a_map_without_a_name_goes_on_growing) {
  PerfMap map(root.string());
  std::ofstream file(path);
  file << "1000 10 first\n" << std::flush;
  EXPECT_EQ(name_at(map, 0x1008, event_clock()), "first");
  std::filesystem::remove(path);
  file << "1000 10 second\n" << std::flush;
  wait_for_ticks();
  EXPECT_EQ(name_at(map, 0x1008, event_clock()), "second");
}

TEST_F(OfThisProcess, a_map_may_have_any_time) {
  for (const time_t seconds : {time_t{1} << 33, time_t{15'000'000'000}}) {
    append("1000 10 late\n");
    const struct timespec far[2] = {{.tv_sec = seconds, .tv_nsec = 0}, {.tv_sec = seconds, .tv_nsec = 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), far, 0), 0);
    PerfMap map(root.string());
    map.look(event_clock());
    EXPECT_EQ(name_at(map, 0x1008, event_clock()), "late");
  }
}

TEST_F(OfThisProcess, a_map_of_an_earlier_process_of_the_number_is_not_believed) {
  append("1000 10 stale\n");
  const struct timespec old[2] = {{.tv_sec = 1'000'000'000, .tv_nsec = 0}, {.tv_sec = 1'000'000'000, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), old, 0), 0);
  PerfMap map(root.string());
  EXPECT_EQ(name_at(map, 0x1008, event_clock()), "none");
  EXPECT_EQ(map.why_not(), "its perf map is of an earlier process of its number");
  append("1000 10 fresh\n");
  wait_for_ticks();
  EXPECT_EQ(name_at(map, 0x1008, event_clock()), "fresh") << "it was written to since";
}

}  // namespace
}  // namespace usdt::stack
