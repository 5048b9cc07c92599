// SPDX-License-Identifier: BSD-2-Clause
#include "random_expressions.hpp"

#include <array>
#include <cstdlib>
#include <limits>
#include <string_view>

namespace usdt::test {
namespace {

constexpr std::array<const char*, 18> kBinary{"+",  "-",  "*",  "&",  "|",  "^", "<", "<=", ">",
                                              ">=", "==", "!=", "&&", "||", "/", "%", "<<", ">>"};

}  // namespace

std::uint64_t ExpressionWriter::number() {
  switch (below(6)) {
    case 0:
      return below(8);
    case 1:
      return 0 - std::uint64_t{below(8)};
    case 2:
      return std::uint64_t{1} << below(64);
    case 3:
      return static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::min()) + below(3) - 1;
    case 4:
      return random_() >> below(64);
    default:
      return random_();
  }
}

std::string ExpressionWriter::leaf() {
  if (below(3) != 0) return std::string(1, static_cast<char>('a' + below(6)));
  const std::uint64_t n = number();
  const bool only_c = style_ == Style::only_c;
  const std::string text =
      only_c || below(2) == 0 ? std::to_string(n >> 1) + (only_c ? "LL" : "") : std::to_string(n) + "ULL";
  return style_ == Style::of_numbers ? "number(" + text + ")" : text;
}

std::string ExpressionWriter::expression(int depth) {
  if (depth == 0 || below(8) == 0) return leaf();
  const auto in_parentheses = [&](const std::string& text) { return below(3) == 0 ? "(" + text + ")" : text; };
  switch (below(8)) {
    case 0: {
      const char op = "-~!"[below(3)];
      return std::string(1, op) + "(" + expression(depth - 1) + ")";
    }
    case 1: {
      const std::string condition = expression(depth - 1);
      const std::string yes = expression(depth - 1);
      if (style_ == Style::of_numbers) return "choose(" + condition + ", " + yes + ", " + expression(depth - 1) + ")";
      return "(" + condition + " ? " + yes + " : " + expression(depth - 1) + ")";
    }
    default:
      break;
  }
  const std::string op = kBinary[below(kBinary.size())];
  const std::string left = in_parentheses(expression(depth - 1));
  const std::string right = in_parentheses(expression(depth - 1));
  const bool trap = op == "/" || op == "%" || op == "<<" || op == ">>";
  // In C a division by 0 and a shift by more than there is have no meaning, and truth values are of 32 bits. GCC 12
  // makes a / -b of -(a / b), also where the least number is divided by 1.
  if (style_ == Style::only_c && trap) return "((0LL + (" + left + ")) " + op + " (((" + right + ") & 31) + 2))";
  return left + " " + op + " " + right;
}

std::size_t how_many(std::size_t usual, std::size_t whole) {
  const char* is_long = std::getenv("USDT_LONG");
  return is_long != nullptr && std::string_view(is_long) == "1" ? whole : usual;
}

std::vector<NumbersOfHit> random_hits(ExpressionWriter& writer, const std::vector<Arg>& args) {
  std::vector<NumbersOfHit> hits(6);
  for (NumbersOfHit& hit : hits) {
    for (const Arg& arg : args) {
      const unsigned spare = 64 - 8 * arg.type.size;
      const std::uint64_t bits = writer.number() << spare;
      hit.numbers.push_back(arg.type.is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(bits) >> spare)
                                               : bits >> spare);
    }
  }
  hits.back().unread = static_cast<std::uint32_t>(writer.below(64));
  return hits;
}

std::vector<Arg> six_arguments(bool all_signed) {
  std::vector<Arg> args;
  for (std::size_t i = 0; i < 6; ++i) {
    Arg arg{.type = {.size = 8, .is_signed = all_signed || i % 2 == 0}, .location = Register{}, .source = {}};
    if (!all_signed && i == 4) arg.type = {.size = 4, .is_signed = true};
    if (!all_signed && i == 5) arg.type = {.size = 2, .is_signed = false};
    const std::string name(1, static_cast<char>('a' + i));
    arg.declaration = std::make_shared<const Declaration>(Declaration{name, {}, {}});
    args.push_back(std::move(arg));
  }
  return args;
}

Result<TypedExpression> typed(const std::string& text, const std::vector<Arg>& args) {
  auto parsed = parse_expression(text);
  if (!parsed) return fail(parsed.error());
  std::vector<std::size_t> places;
  for (const ValuePath& path : parsed->values)
    places.push_back(TypedExpression::is_word(path)
                         ? TypedExpression::kNoArgument
                         : static_cast<std::size_t>(std::get<std::string>(path.root)[0] - 'a'));
  return TypedExpression::check(*parsed, args, places);
}

}  // namespace usdt::test
