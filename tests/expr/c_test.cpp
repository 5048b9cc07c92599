// SPDX-License-Identifier: BSD-2-Clause
// A C compiler judges precedence and arithmetic: it gets the same text.
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

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
  std::vector<Question> questions(how_many(1500, 20'000));
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

TEST(Expression, literals_of_texts_and_characters_are_what_a_c_compiler_makes_of_them) {
  const std::vector<std::string> texts{R"(hello)",     R"(\150ello)",       R"(\1502)",      R"(\0)",    R"(\08)",
                                       R"(\12\377\1)", R"(\a\b\f\n\r\t\v)", R"(\\\"\'\?)",   R"(\x68)",  R"(\x68 ello)",
                                       R"(\xff\x00)",  R"(\u00e9t\u00e9)",  R"(\U0001f600)", "\xc3\xa9", R"(%d\n)"};
  std::string program =
      "#include <stdio.h>\nstatic void say(const char *t, unsigned n) { while (n--) printf(\"%02x\", "
      "(unsigned char)*t++); puts(\"\"); }\nint main(void) {\n";
  for (const std::string& text : texts) program += fmt::format("say(\"{0}\", sizeof(\"{0}\") - 1);\n", text);
  const TempDir dir;
  dir.write("texts.c", program + "return 0; }\n");
  const auto ran = run_in(dir, "cc -w texts.c -o texts && ./texts");
  ASSERT_EQ(ran.status, 0) << ran.output;
  std::string ours;
  for (const std::string& text : texts) {
    const auto parsed = parse_expression("\"" + text + "\"");
    ASSERT_TRUE(parsed) << text << ": " << parsed.error().message;
    for (const char c : parsed->root.text) ours += fmt::format("{:02x}", static_cast<unsigned char>(c));
    ours += "\n";
  }
  EXPECT_EQ(ours, ran.output);
  EXPECT_EQ(parse_expression(R"('\150')")->root.bits, 'h');
  for (const char* none : {R"("\h")", R"("\e")", R"("\8")", R"("\400")", R"("\x")", R"("\x4")", R"("\u12")",
                           R"("\ud800")", R"("\*")", R"('\h')"}) {
    const auto parsed = parse_expression(none);
    ASSERT_FALSE(parsed) << none;
    EXPECT_EQ(parsed.error().column, 1U) << none << ": " << parsed.error().message;
  }
}

/// What the documentation says of numbers, as a class whose operators a C++ compiler puts in order.
constexpr const char* kNumbers = R"(
typedef unsigned long long u;
typedef __int128 wide;
struct V { u bits; u is_signed; u known; };
static wide of(V a) { return a.is_signed ? (wide)(long long)a.bits : (wide)a.bits; }
static V made(u bits, bool is_signed, bool known) { return {bits, is_signed, known}; }
static V both(V a, V b, wide result) { return made((u)result, a.is_signed && b.is_signed, a.known && b.known); }
static V number(u n) { return made(n, n >> 63 == 0, true); }
static V truth(V a, V b, bool is) { return made(is, true, a.known && b.known); }
static V operator+(V a, V b) { return both(a, b, (wide)(a.bits + b.bits)); }
static V operator-(V a, V b) { return both(a, b, (wide)(a.bits - b.bits)); }
static V operator*(V a, V b) { return both(a, b, (wide)(a.bits * b.bits)); }
static V operator&(V a, V b) { return both(a, b, (wide)(a.bits & b.bits)); }
static V operator|(V a, V b) { return both(a, b, (wide)(a.bits | b.bits)); }
static V operator^(V a, V b) { return both(a, b, (wide)(a.bits ^ b.bits)); }
static V divided(V a, V b, bool quotient) {
  const bool is_signed = a.is_signed && b.is_signed;
  if (!a.known || !b.known || b.bits == 0) return made(0, is_signed, false);
  const wide x = is_signed ? of(a) : (wide)a.bits, y = is_signed ? of(b) : (wide)b.bits;
  return both(a, b, quotient ? x / y : x % y);
}
static V operator/(V a, V b) { return divided(a, b, true); }
static V operator%(V a, V b) { return divided(a, b, false); }
static V operator<<(V a, V b) { return made(b.bits > 63 ? 0 : a.bits << b.bits, a.is_signed, a.known && b.known); }
static V operator>>(V a, V b) {
  const wide shifted = b.bits > 63 ? (of(a) < 0 ? -1 : 0) : of(a) >> b.bits;
  return made((u)shifted, a.is_signed, a.known && b.known);
}
static V operator<(V a, V b) { return truth(a, b, of(a) < of(b)); }
static V operator<=(V a, V b) { return truth(a, b, of(a) <= of(b)); }
static V operator>(V a, V b) { return truth(a, b, of(a) > of(b)); }
static V operator>=(V a, V b) { return truth(a, b, of(a) >= of(b)); }
static V operator==(V a, V b) { return truth(a, b, of(a) == of(b)); }
static V operator!=(V a, V b) { return truth(a, b, of(a) != of(b)); }
static V operator-(V a) { return made(0 - a.bits, a.is_signed, a.known); }
static V operator~(V a) { return made(~a.bits, a.is_signed, a.known); }
static V operator!(V a) { return made(a.bits == 0, true, a.known); }
static V operator&&(V a, V b) { return a.known && a.bits == 0 ? number(0) : made(b.bits != 0, true, a.known && b.known); }
static V operator||(V a, V b) { return a.known && a.bits != 0 ? number(1) : made(b.bits != 0, true, a.known && b.known); }
static V choose(V c, V yes, V no) {
  const V chosen = c.bits != 0 ? yes : no;
  return made(chosen.bits, yes.is_signed && no.is_signed, c.known && chosen.known);
}
)";

/// A number of that class.
struct JudgedNumber {
  std::uint64_t bits, is_signed, known;
};
using JudgedFunction = JudgedNumber (*)(JudgedNumber, JudgedNumber, JudgedNumber, JudgedNumber, JudgedNumber,
                                        JudgedNumber);

/// Expressions that a C++ compiler made functions of, as long as this lives.
class Judge {
 public:
  explicit Judge(const std::vector<std::string>& texts) {
    std::string program = kNumbers;
    std::string table = "extern \"C\" { extern V (*const functions[])(V, V, V, V, V, V) = {\n";
    for (std::size_t n = 0; n < texts.size(); ++n) {
      program += fmt::format("static V f{}(V a, V b, V c, V d, V e, V f) {{ return {}; }}\n", n, texts[n]);
      table += fmt::format("f{},\n", n);
    }
    dir_.write("judge.cpp", program + table + "}; }\n");
    const auto made = run_in(dir_, "c++ -w -O0 -std=c++17 -shared -fPIC judge.cpp -o judge.so");
    EXPECT_EQ(made.status, 0) << made.output.substr(0, 2000);
    library_ = ::dlopen((dir_.path() / "judge.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library_, nullptr) << ::dlerror();
    if (library_ != nullptr) functions_ = static_cast<const JudgedFunction*>(::dlsym(library_, "functions"));
  }
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;
  ~Judge() {
    if (library_ != nullptr) ::dlclose(library_);
  }

  /// What expression `n` comes to. Nothing: it has no answer.
  [[nodiscard]] std::optional<std::uint64_t> value(std::size_t n, const std::vector<Arg>& args,
                                                   const NumbersOfHit& hit) const {
    if (functions_ == nullptr) return std::nullopt;
    std::array<JudgedNumber, 6> of{};
    for (std::size_t i = 0; i < of.size(); ++i) {
      const bool natural = args[i].type.size == 8 && !args[i].type.is_signed;
      of[i] = {hit.numbers[i], natural ? 0U : 1U, (hit.unread >> i & 1) == 0 ? 1U : 0U};
    }
    const JudgedNumber told = functions_[n](of[0], of[1], of[2], of[3], of[4], of[5]);
    return told.known != 0 ? std::optional(told.bits) : std::nullopt;
  }

 private:
  TempDir dir_;
  void* library_ = nullptr;
  const JudgedFunction* functions_ = nullptr;
};

/// The same expressions and hits as in kernel_test.cpp, where the kernel's answers are compared with evaluate(), too.
TEST(Expression, of_typed_arguments_is_what_a_cpp_compiler_makes_of_the_same_text) {
  constexpr std::size_t batch = 2000;
  const auto args = six_arguments(false);
  ExpressionWriter writer(611, false), judged(611, ExpressionWriter::Style::of_numbers);
  std::size_t asked = 0, undecided = 0;
  const std::size_t all = how_many(1000, 100'000);
  for (std::size_t begin = 0; begin < all && !HasFailure(); begin += batch) {
    std::vector<std::string> texts, texts_of_judge;
    std::vector<std::vector<NumbersOfHit>> hits;
    for (std::size_t n = begin; n < std::min(all, begin + batch); ++n) {
      texts.push_back(writer.expression());
      texts_of_judge.push_back(judged.expression());
      hits.push_back(random_hits(writer, args));
      static_cast<void>(random_hits(judged, args));
    }
    const Judge judge(texts_of_judge);
    for (std::size_t n = 0; n < texts.size() && !HasFailure(); ++n) {
      const auto expression = typed(texts[n], args);
      if (!expression) {
        EXPECT_EQ(expression.error().message, "a division by 0") << texts[n];
        continue;
      }
      for (const NumbersOfHit& hit : hits[n]) {
        const auto got = evaluate(*expression, hit);
        EXPECT_EQ(got, judge.value(n, args, hit)) << texts[n] << fmt::format(" of {:#x}", fmt::join(hit.numbers, " "));
        ++asked;
        undecided += got ? 0 : 1;
      }
    }
  }
  fmt::print("{} values of {} expressions, {} of them undecided\n", asked, all, undecided);
  EXPECT_GT(asked, all);
}

}  // namespace
}  // namespace usdt::test
