// SPDX-License-Identifier: BSD-2-Clause
// Lines of instructions. CPython's own co_lines() judges, for each instruction of modules of its library.
#include "interpreter/line_table.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace usdt::interpreter {
namespace {

/// Prints each code object of some modules: its first line, its line table, and the line of each instruction by
/// co_lines(), 0 where there is none.
constexpr const char* script = R"(
import importlib.util, types
def show(code):
    lines = [0] * (len(code.co_code) // 2)
    for start, end, line in code.co_lines():
        for at in range(start // 2, end // 2):
            lines[at] = line or 0
    print(code.co_firstlineno, code.co_linetable.hex() or '-', *lines)
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            show(each)
odd = ['x = (1,\n' + '\n' * 300 + '2 + y)', 'try:\n  a()\nexcept B:\n  pass\nfinally:\n  c()',
       'async def f():\n  async with a as b:\n    yield [i async for i in b]']
for text in odd:
    show(compile(text, 'odd', 'exec'))
for name in ('argparse ast asyncio.base_events dataclasses decimal difflib email.message inspect tarfile typing '
             '_pydecimal').split():
    path = importlib.util.find_spec(name).origin
    show(compile(open(path, encoding='utf-8').read(), path, 'exec'))
)";

std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; text != "-" && i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoul(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

/// What the program of this name says; empty: it cannot be run.
std::string output_of(const std::string& python) {
  const std::string command = python + " -I -c \"$USDT_SCRIPT\" 2>/dev/null";
  ::setenv("USDT_SCRIPT", script, 1);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string text;
  char part[4096];
  while (pipe && std::fgets(part, sizeof(part), pipe.get()) != nullptr) text += part;
  return text;
}

class Lines : public testing::TestWithParam<const char*> {};

TEST_P(Lines, are_those_of_co_lines_for_each_instruction) {
  std::istringstream said(output_of(GetParam()));
  std::size_t objects = 0, instructions = 0;
  for (std::string row; std::getline(said, row); ++objects) {
    std::istringstream words(row);
    std::uint32_t first = 0;
    std::string hex;
    words >> first >> hex;
    const std::vector<std::byte> table = from_hex(hex);
    std::uint32_t offset = 0;
    for (std::uint32_t line; words >> line; offset += 2, ++instructions)
      ASSERT_EQ(line_of(table, first, offset), line) << "at " << offset << " of the code at line " << first;
    EXPECT_EQ(line_of(table, first, offset), 0U) << "behind the last instruction";
  }
  if (objects == 0) GTEST_SKIP() << GetParam() << " is not installed";
  EXPECT_GT(objects, 1000U);
  EXPECT_GT(instructions, 100'000U);
}

INSTANTIATE_TEST_SUITE_P(of_versions, Lines,
                         testing::Values("/usr/bin/python3.11", "/usr/bin/python3.12", "/usr/bin/python3.13",
                                         "/usr/bin/python3.14"),
                         [](const auto& each) { return "python3_" + std::string(each.param).substr(17); });

TEST(LineTable, that_anybody_wrote_is_read_to_its_end_and_no_further) {
  std::minstd_rand random(1);
  for (int round = 0; round < 100'000; ++round) {
    std::vector<std::byte> table(random() % 40);
    for (std::byte& byte : table) byte = static_cast<std::byte>(random());
    if (!table.empty()) table[0] |= std::byte{0x80};
    EXPECT_LE(line_of(table, static_cast<std::uint32_t>(random()), static_cast<std::uint32_t>(random() % 200)),
              static_cast<std::uint32_t>(INT32_MAX));
  }
}

TEST(LineTable, without_entries_tells_nothing) { EXPECT_EQ(line_of({}, 7, 0), 0U); }

}  // namespace
}  // namespace usdt::interpreter
