// SPDX-License-Identifier: BSD-2-Clause
// The names are those that Node.js 18.20 and 20.20 wrote.
#include "stack/v8_name.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <tuple>

namespace usdt::stack {
namespace {

using Parts = std::tuple<CodeTier, std::string, std::string, std::uint32_t, std::uint32_t>;

Parts parts(std::string_view name) {
  const auto parsed = parse_v8_name(name);
  if (!parsed) return {};
  return {parsed->tier, std::string(parsed->function), std::string(parsed->file), parsed->line, parsed->column};
}

TEST(V8Name, has_function_file_and_line_of_definition) {
  EXPECT_EQ(parts("JS:~total /srv/a.js:2:19"), Parts(CodeTier::interpreted, "total", "/srv/a.js", 2, 19));
  EXPECT_EQ(parts("JS:^place /srv/a.js:5:15"), Parts(CodeTier::baseline, "place", "/srv/a.js", 5, 15));
  EXPECT_EQ(parts("JS:+run node:internal/main:9:1"), Parts(CodeTier::optimized, "run", "node:internal/main", 9, 1));
  EXPECT_EQ(parts("LazyCompile:*writeSync node:fs:894"), Parts(CodeTier::optimized, "writeSync", "node:fs", 894, 0));
  EXPECT_EQ(parts("Function:~#priv file:///srv/a.mjs:15"),
            Parts(CodeTier::interpreted, "#priv", "file:///srv/a.mjs", 15, 0));
}

TEST(V8Name, may_lack_the_function_or_the_file) {
  EXPECT_EQ(parts("JS:~ /srv/a.js:8:10"), Parts(CodeTier::interpreted, "", "/srv/a.js", 8, 10));
  EXPECT_EQ(parts("JS:~ev :1:12"), Parts(CodeTier::interpreted, "ev", "", 1, 12));
  EXPECT_EQ(parts("Eval:~ :1:1"), Parts(CodeTier::interpreted, "", "", 1, 1));
}

TEST(V8Name, may_have_spaces_in_both) {
  EXPECT_EQ(parts("JS:~get size /srv/a.js:3:11"), Parts(CodeTier::interpreted, "get size", "/srv/a.js", 3, 11));
  EXPECT_EQ(parts("JS:~in eval :1:12"), Parts(CodeTier::interpreted, "in eval", "", 1, 12));
  EXPECT_EQ(parts("JS:*run /srv/my code/a b.js:3:11"), Parts(CodeTier::optimized, "run", "/srv/my code/a b.js", 3, 11));
  EXPECT_EQ(parts("JS:~run evalmachine.<anonymous>:1:1"),
            Parts(CodeTier::interpreted, "run", "evalmachine.<anonymous>", 1, 1));
}

TEST(V8Name, is_not_taken_apart_where_it_can_be_done_in_two_ways) {
  for (const std::string_view both : {"vmf my vm file.js:1:14", "a /etc/passwd:1:2 /srv/a.js:3:4"})
    EXPECT_EQ(parts("JS:~" + std::string(both)), Parts(CodeTier::interpreted, both, "", 0, 0)) << both;
}

TEST(V8Name, is_of_javascript) {
  for (const std::string_view other : {"", "JS", "JS:", "Builtin:ArrayMap", "BytecodeHandler:Ldar", "RegExp:^a$",
                                       "LazyCompile:made it.js:3", "py::main:/srv/a.py", "double T.leaf(int)"})
    EXPECT_EQ(parse_v8_name(other), std::nullopt) << other;
  EXPECT_TRUE(is_v8_name("Builtin:ArrayMap"));
  EXPECT_FALSE(is_v8_name("py::main:/srv/a.py"));
}

TEST(V8Name, without_a_number_is_a_name_alone) {
  for (const std::string_view odd : {"a /srv/a.js", "a /srv/a.js:", "a /srv/a.js:x", "", "a /srv/a.js:99999999999"})
    EXPECT_EQ(parts("JS:~" + std::string(odd)), Parts(CodeTier::interpreted, odd, "", 0, 0)) << odd;
}

}  // namespace
}  // namespace usdt::stack
