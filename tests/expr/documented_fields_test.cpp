// SPDX-License-Identifier: BSD-2-Clause
// The words for what is known of every hit, as the library and docs/expressions.md have them.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/places.hpp"
#include "usdt/hit_field.hpp"

namespace usdt {
namespace {

TEST(HitFields, are_found_by_their_words) {
  for (const HitFieldInfo& each : kHitFields) {
    EXPECT_EQ(find_hit_field(each.word), &each);
    EXPECT_EQ(to_string(each.field), each.word);
    EXPECT_EQ(each.type == ExpressionType::stack, each.source == HitFieldSource::stack) << each.word;
  }
  EXPECT_EQ(find_hit_field("retval"), nullptr);
}

TEST(HitFields, are_a_table_of_the_documents) {
  std::ifstream file(test::source_dir() / "docs/expressions.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  std::string rows = "| word | what it is |\n|---|---|\n";
  for (const HitFieldInfo& each : kHitFields)
    rows.append("| `").append(each.word).append("` | ").append(each.help).append(" |\n");
  EXPECT_NE(page.find(rows + "\n"), page.npos) << "docs/expressions.md should have\n" << rows;
}

}  // namespace
}  // namespace usdt
