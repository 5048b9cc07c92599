// SPDX-License-Identifier: BSD-2-Clause
#include "stack/perf_map.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace usdt::stack {
namespace {

/// The name of the entry that has `address` in `text`; empty: none has.
std::string name_at(std::string_view text, std::uint64_t address) {
  const auto entries = parse_perf_map(text);
  const PerfMapEntry* entry = find_entry(entries, address);
  return entry == nullptr ? "" : std::string(text.substr(entry->name, entry->length));
}

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
  const auto entries = parse_perf_map(text);
  for (std::uint32_t at = 0; at < line_of.size(); ++at) {
    const std::string wanted = line_of[at] == 0 ? "" : std::to_string(line_of[at]);
    const PerfMapEntry* entry = find_entry(entries, at);
    ASSERT_EQ(entry == nullptr ? "" : text.substr(entry->name, entry->length), wanted) << at;
  }
}

TEST(PerfMap, a_function_that_took_the_place_of_a_thousand_smaller_ones_is_found_in_all_of_it) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += fmt::format("{:x} 40 old{}\n", 0x1000 + 0x40 * i, i);
  text += fmt::format("1000 {:x} new\n", 0x40 * 1000);
  const auto entries = parse_perf_map(text);
  EXPECT_EQ(name_at(text, 0x1000), "new");
  EXPECT_EQ(name_at(text, 0x1000 + 0x40 * 999), "new");
  EXPECT_EQ(find_entry(entries, 0x1000 + 0x40 * 999)->code, 0x1000U) << "what distances count from";
}

TEST(PerfMap, lines_of_another_form_are_passed_over) {
  const std::string_view text =
      "\n \n1000\n1000 \n1000 10\n1000 10 \n0x2000 0x10 with prefixes\nzz 10 a\n3000 zz b\n-1 5 c\n"
      "10000000000000000 5 too wide\n4000 0 empty\n5000 10 unended";
  EXPECT_EQ(parse_perf_map(text).size(), 2U);
  EXPECT_EQ(name_at(text, 0x2008), "with prefixes");
  EXPECT_EQ(name_at(text, 0x5008), "unended");
}

TEST(PerfMap, ranges_that_wrap_and_names_that_do_not_end_do_no_harm) {
  const std::string text = "fffffffffffffff0 ffffffffffffffff all\n1000 10 " + std::string(100'000, 'x');
  EXPECT_EQ(name_at(text, 0xfffffffffffffff8), "all");
  EXPECT_EQ(name_at(text, 0x1008).size(), 1024U);
  EXPECT_EQ(name_at(text, 0x10), "");
}

}  // namespace
}  // namespace usdt::stack
