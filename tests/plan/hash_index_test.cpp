// SPDX-License-Identifier: BSD-2-Clause
#include "base/hash_index.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace usdt {
namespace {

/// Texts, each once, as the planner keeps its names.
class Texts {
 public:
  explicit Texts(std::size_t different_hashes = SIZE_MAX) : different_hashes_(different_hashes) {}

  std::pair<std::uint32_t, bool> add(const std::string& text) {
    const auto added = index_.try_add(hash(text), static_cast<std::uint32_t>(all_.size()), is(text));
    if (added.second) all_.push_back(text);
    return added;
  }
  [[nodiscard]] bool contains(const std::string& text) const { return index_.contains(hash(text), is(text)); }

 private:
  [[nodiscard]] std::size_t hash(const std::string& text) const {
    return std::hash<std::string>{}(text) % different_hashes_;
  }
  [[nodiscard]] std::function<bool(std::uint32_t)> is(const std::string& text) const {
    return [this, text](std::uint32_t at) { return all_[at] == text; };
  }

  std::size_t different_hashes_;
  HashIndex index_;
  std::vector<std::string> all_;
};

/// 20,000 texts, every second one twice, against a map of the standard library.
void expect_what_a_map_says(Texts texts) {
  std::unordered_map<std::string, std::uint32_t> map;
  for (std::size_t i = 0; i < 20'000; ++i) {
    const std::string text = "text " + std::to_string(i % 2 == 0 ? i : i / 3);
    EXPECT_EQ(texts.contains(text), map.contains(text)) << text;
    const auto [known, fresh] = map.try_emplace(text, static_cast<std::uint32_t>(map.size()));
    ASSERT_EQ(texts.add(text), std::pair(known->second, fresh)) << text;
  }
}

TEST(HashIndex, finds_what_a_map_finds) { expect_what_a_map_says(Texts()); }

TEST(HashIndex, tells_things_apart_that_hash_alike) { expect_what_a_map_says(Texts(100)); }

TEST(HashIndex, has_nothing_before_something_is_added) {
  Texts texts;
  EXPECT_FALSE(texts.contains(""));
  EXPECT_EQ(texts.add(""), std::pair(0U, true));
  EXPECT_EQ(texts.add(""), std::pair(0U, false));
  EXPECT_TRUE(texts.contains(""));
}

}  // namespace
}  // namespace usdt
