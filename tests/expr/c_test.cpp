// SPDX-License-Identifier: BSD-2-Clause
// A C compiler judges precedence and arithmetic: it gets the same text.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <charconv>

#include "elf/toolchain.hpp"
#include "random_expressions.hpp"

namespace usdt::test {
namespace {

struct Question {
  std::string text;
  std::vector<std::uint64_t> numbers;
};

std::string program_of(const std::vector<Question>& questions) {
  std::string program = "#include <stdio.h>\ntypedef long long i;\n";
  std::string calls;
  for (std::size_t n = 0; n < questions.size(); ++n) {
    program += fmt::format("static i f{}(i a, i b, i c, i d, i e, i f) {{ return {}; }}\n", n, questions[n].text);
    calls += fmt::format("printf(\"%lld\\n\", f{}(", n);
    for (std::size_t k = 0; k < 6; ++k) calls += fmt::format("{}(i){}ULL", k > 0 ? "," : "", questions[n].numbers[k]);
    calls += "));\n";
  }
  return program + "int main(void) {\n" + calls + "return 0; }\n";
}

TEST(Expression, of_signed_numbers_is_what_a_c_compiler_makes_of_the_same_text) {
  const auto args = six_arguments(true);
  ExpressionWriter writer(20261122, true);
  std::vector<Question> questions(1500);
  for (Question& question : questions) {
    question.text = writer.expression();
    for (int k = 0; k < 6; ++k) question.numbers.push_back(writer.number());
  }
  const TempDir dir;
  dir.write("questions.c", program_of(questions));
  const auto ran = run_in(dir, "cc -w -O0 -fwrapv questions.c -o questions && ./questions");
  ASSERT_EQ(ran.status, 0) << ran.output.substr(0, 2000);
  const char* at = ran.output.data();
  const char* const end = at + ran.output.size();
  for (const Question& question : questions) {
    std::int64_t wanted = 0;
    at = std::from_chars(at, end, wanted).ptr + 1;
    const auto expression = typed(question.text, args);
    ASSERT_TRUE(expression) << question.text << ": " << expression.error().message;
    NumbersOfHit hit;
    // Only the arguments it reads are in it, in its own order of them.
    hit.numbers = question.numbers;
    const auto got = evaluate(*expression, hit);
    ASSERT_TRUE(got) << question.text;
    EXPECT_EQ(static_cast<std::int64_t>(*got), wanted) << question.text;
  }
}

}  // namespace
}  // namespace usdt::test
