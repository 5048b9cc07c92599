// SPDX-License-Identifier: BSD-2-Clause
// Golden pairs: an argument text on a line of its own, then one indented line for each argument it must give.
#include <gtest/gtest.h>

#include <fstream>
#include <ostream>

#include "describe.hpp"
#include "parsers/args.hpp"
#include "tests/places.hpp"

namespace usdt::parsers {
namespace {

struct Golden {
  const char* name;
  Machine machine;
};

void PrintTo(const Golden& golden, std::ostream* out) { *out << golden.name; }

struct Pair {
  int line = 0;
  std::string text;
  std::vector<std::string> expected;
};

std::vector<Pair> read_pairs(const std::string& path) {
  std::vector<Pair> pairs;
  std::ifstream file(path);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line.starts_with("# ")) continue;
    if (line.starts_with("  ")) {
      pairs.back().expected.push_back(line.substr(2));
    } else {
      pairs.push_back({number, line, {}});
    }
  }
  return pairs;
}

class GoldenPairs : public testing::TestWithParam<Golden> {};

TEST_P(GoldenPairs, come_out_as_written) {
  const std::string path =
      (test::source_dir() / "tests/parsers/corpus" / (std::string(GetParam().name) + ".txt")).string();
  const std::vector<Pair> pairs = read_pairs(path);
  ASSERT_FALSE(pairs.empty()) << path;
  for (const Pair& pair : pairs) {
    SCOPED_TRACE(path + ":" + std::to_string(pair.line) + ": " + pair.text);
    const std::vector<ParsedArg> args = parse_args(pair.text, GetParam().machine);
    std::vector<std::string> got;
    got.reserve(args.size());
    for (const ParsedArg& arg : args) got.push_back(describe(arg));
    EXPECT_EQ(got, pair.expected);
    EXPECT_EQ(broken_invariant(pair.text, args), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Real, GoldenPairs,
                         testing::Values(Golden{"x86_64", Machine::x86_64}, Golden{"i386", Machine::i386},
                                         Golden{"aarch64", Machine::aarch64}),
                         [](const auto& instance) { return std::string(instance.param.name); });
INSTANTIATE_TEST_SUITE_P(Odd, GoldenPairs,
                         testing::Values(Golden{"forms_x86", Machine::x86_64}, Golden{"odd_x86", Machine::x86_64},
                                         Golden{"forms_aarch64", Machine::aarch64},
                                         Golden{"odd_aarch64", Machine::aarch64},
                                         Golden{"forms_riscv64", Machine::riscv64},
                                         Golden{"odd_riscv64", Machine::riscv64}),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace usdt::parsers
