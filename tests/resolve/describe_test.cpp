// SPDX-License-Identifier: BSD-2-Clause
// What providers and presets declare of arguments (docs/provider-note.md, type 2).
#include "resolve/describe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "usdt/decode.hpp"

namespace usdt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The arguments of a site with that text, declared so.
std::vector<Arg> described(std::string_view args_text, std::string declared) {
  std::vector<Arg> args = ArgDecoder(Machine::x86_64).decode(args_text);
  SiteDescription description;
  description.declared = std::move(declared);
  describe(args, description);
  return args;
}

std::vector<std::string> names_of(const Arg& arg) {
  std::vector<std::string> names;
  for (const Enumerator& each : arg.declaration->enumerators)
    names.push_back(each.name + "=" + std::to_string(static_cast<std::int64_t>(each.bits)));
  return names;
}

std::string why_not(std::string_view declared) {
  const auto checked = check_declaration(declared);
  return checked ? std::string() : checked.error().message;
}

TEST(Declared, numbers_have_names) {
  const auto args =
      described("-4@%edi 8@%rsi 4@%edx", "mode:{0=exclusive, 0x10 = shared,-1=read-only}, rows, took[us]");
  EXPECT_THAT(names_of(args[0]), ElementsAre("exclusive=0", "shared=16", "read-only=-1"));
  EXPECT_EQ(args[0].name(), "mode");
  EXPECT_EQ(args[0].type.kind, TypeKind::enumeration);
  EXPECT_EQ(args[1].name(), "rows") << "commas in braces separate no arguments";
  EXPECT_EQ(args[2].declaration->unit, "us");
  EXPECT_EQ(enumerator_name(args[0], 0xffffffff), "read-only") << "its four bytes count";
  EXPECT_EQ(enumerator_name(args[0], 7), "");
  EXPECT_EQ(resolve::declared_count("mode:{0=exclusive, 1=shared}, rows"), 2U);
}

TEST(Declared, a_list_that_is_none_names_nothing_and_hides_no_neighbour) {
  for (const std::string list : {"{0=a, 0=b}", "{a=0}", "{}", "{0=}", "{0=a,}", "{99999999999999999999=a}"}) {
    const auto args = described("4@%edi 8@%rsi", "mode:" + list + ", rows");
    EXPECT_THAT(names_of(args[0]), IsEmpty()) << list;
    EXPECT_EQ(args[0].name(), "mode") << list;
    EXPECT_EQ(args[1].name(), "rows") << list;
    EXPECT_THAT(why_not("rows, mode:" + list), HasSubstr("'mode:" + list + "': '")) << list;
  }
}

TEST(Declared, reals_have_no_names) {
  const auto args = described("8f@%xmm0", "load:{0=none}");
  EXPECT_THAT(names_of(args[0]), IsEmpty());
}

TEST(Declared, what_a_script_declares_is_checked) {
  EXPECT_EQ(why_not("sql:string, rows, took:duration[us], mode:{0=exclusive, 1=shared}, odd:of_tomorrow"), "");
  EXPECT_EQ(why_not("mode:{0=a, x=b}"), "'mode:{0=a, x=b}': 'x=b' is not NUMBER=NAME");
  EXPECT_EQ(why_not("mode:{1=a, 0x1=b}"), "'mode:{1=a, 0x1=b}': '0x1=b' names a number a second time");
  EXPECT_THAT(why_not("mode:{0=a"), HasSubstr("are written {NUMBER=NAME, NUMBER=NAME}"));
  EXPECT_EQ(why_not("thread id, rows"), "'thread id': 'thread id' is no name");
  EXPECT_EQ(why_not(" "), "no argument is declared");
}

}  // namespace
}  // namespace usdt
