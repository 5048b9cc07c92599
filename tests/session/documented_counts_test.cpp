// SPDX-License-Identifier: BSD-2-Clause
// The pages that list the numbers of accounts have each of the library's table.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "tests/places.hpp"
#include "usdt/account.hpp"

namespace usdt {
namespace {

std::string page(const std::string& name) {
  std::ifstream file(test::source_dir() / "docs" / name);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Documents, say_of_each_number_in_json_what_it_is) {
  const std::string text = page("json.md");
  for (const CountInfo& count : counts())
    for (const bool spans : {false, true}) {
      const auto told = tell_count(count, {}, spans);
      if (!told || told->role == CountRole::events) continue;  // "events"
      const std::string name = (told->role == CountRole::lost ? "`lost." : "`") + std::string(told->name) + "`";
      EXPECT_NE(text.find(name), text.npos) << "docs/json.md has no " << name;
    }
}

TEST(Documents, list_the_numbers_of_a_recording_in_their_places) {
  const std::string text = page("recording.md");
  std::map<unsigned, std::string_view> places;
  for (const CountInfo& count : counts()) {
    if (count.recorded > 0) places.emplace(count.recorded, count.name);
  }
  std::size_t at = text.find("hits of a probe: numbers: probe,");
  ASSERT_NE(at, text.npos);
  const auto recorded = std::ranges::count_if(counts(), [](const CountInfo& count) { return count.recorded > 0; });
  EXPECT_EQ(places.size(), static_cast<std::size_t>(recorded)) << "a place was given twice";
  for (unsigned place = 1; place <= places.size(); ++place) {
    ASSERT_TRUE(places.contains(place)) << "no number has place " << place;
    at = text.find(places[place], at);
    ASSERT_NE(at, text.npos) << "docs/recording.md does not have " << places[place] << " in place " << place;
  }
}

}  // namespace
}  // namespace usdt
