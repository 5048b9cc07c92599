// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "expr/row.hpp"
#include "random_expressions.hpp"

namespace usdt::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kHighest = std::numeric_limits<std::int64_t>::max();

/// The key of the first argument, `number`, as `key` makes it.
std::int64_t key_of(const Expression& key, std::uint64_t number, bool is_signed = true) {
  std::vector<Arg> args = six_arguments(is_signed);
  if (!is_signed) args[0].type.is_signed = false;
  const auto typed = TypedExpression::check(key, args, {0});
  EXPECT_TRUE(typed) << typed.error().message;
  NumbersOfHit hit;
  hit.numbers.assign(6, number);
  return static_cast<std::int64_t>(evaluate(*typed, hit).value());
}

std::vector<std::uint64_t> telling_numbers() {
  std::vector<std::uint64_t> numbers;
  for (int bit = 0; bit < 64; ++bit)
    for (const std::uint64_t near : {-2, -1, 0, 1, 2}) numbers.push_back((1ULL << bit) + near);
  ExpressionWriter writer(4, false);
  for (int i = 0; i < 2000; ++i) numbers.push_back(writer.number());
  return numbers;
}

TEST(Buckets, of_powers_of_2_have_the_numbers_that_are_put_in_them) {
  for (unsigned sub_bits = 0; sub_bits <= 4; ++sub_bits) {
    const Expression key = log2_buckets(*parse_expression("a"), sub_bits);
    for (const std::uint64_t number : telling_numbers()) {
      for (const bool is_signed : {true, false}) {
        const Int128 value = is_signed ? static_cast<Int128>(static_cast<std::int64_t>(number)) : Int128{number};
        const Bucket bucket = Bucket::log2(key_of(key, number, is_signed), sub_bits);
        EXPECT_TRUE(bucket.first <= value && value <= bucket.last) << number << " with " << sub_bits;
        // Two neighbours of one width, apart from the smallest, make up a power of 2 at most.
        const Int128 size = value < 0 ? -value : value;
        EXPECT_TRUE(bucket.last - bucket.first + 1 <= (size >> sub_bits) + 1) << number << " with " << sub_bits;
      }
    }
  }
}

TEST(Reals, have_the_extremes_that_their_order_says) {
  std::vector<Arg> args = six_arguments(true);
  args[0].type = {.size = 8, .is_signed = true, .kind = TypeKind::floating};
  TableQuestion question{.value = parse_expression("a").value(), .extremes = true, .reals = true};
  const auto typed = TypedExpression::check(expr::row_of(nullptr, question), args, {0});
  ASSERT_TRUE(typed) << typed.error().message;
  const auto planned = expr::planned_table(*typed, args, question);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_EQ(planned->value, ExpressionType::real64);
  TableBuilder builder(*planned);
  const auto add = [&](double value) {
    NumbersOfHit hit;
    hit.numbers.assign(6, std::bit_cast<std::uint64_t>(value));
    return builder.add(*typed, hit);
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double least = kInfinity, most = -kInfinity;
  for (const double value : {-0.0, 0.1, -3e-310, 2.5, -1e300, 1e-300, 5e300, kInfinity, -7.0, -kInfinity}) {
    EXPECT_EQ(add(value), TableBuilder::Added::row);
    least = std::min(least, value);
    most = std::max(most, value);
    const TableRow row = builder.rows().front();
    EXPECT_EQ(real_of_extreme(*planned->value, row.minimum), least);
    EXPECT_EQ(real_of_extreme(*planned->value, row.maximum), most);
    EXPECT_EQ(row.sum, 0) << "of reals there is none";
  }
  EXPECT_EQ(add(std::numeric_limits<double>::quiet_NaN()), TableBuilder::Added::undecided);
  question.reals = false;
  EXPECT_THAT(expr::planned_table(*typed, args, question).error().message, HasSubstr("are whole numbers"));
}

/// A table by keys over six words, which are the first ones of the alphabet in order, and may be pointers.
Result<PlannedTable> planned(std::string_view keys, std::uint32_t key_bytes, bool in_kernel) {
  TableQuestion question{.keys = parse_expressions(keys).value(), .key_bytes = key_bytes};
  std::vector<Arg> args = six_arguments(true);
  for (Arg& arg : args) arg.type.is_signed = false;
  const Expression row = expr::row_of(nullptr, question);
  std::vector<std::size_t> places(row.values.size());
  std::iota(places.begin(), places.end(), 0);
  const auto typed = TypedExpression::check(row, args, places);
  EXPECT_TRUE(typed) << typed.error().message;
  return in_kernel ? expr::planned_kernel_table(*typed, args, question) : expr::planned_table(*typed, args, question);
}
PlannedTable planned_by(std::string_view keys, std::uint32_t key_bytes = TableQuestion::kMostKeyBytes) {
  return planned(keys, key_bytes, false).value();
}

TEST(Keys, are_called_as_the_question_says_and_their_numbers_too) {
  const PlannedTable table = planned_by("a & 0xff as command:{3=query, 22=prepare}, a as load, a * 2");
  std::vector<std::string> labels;
  for (const TableColumn& column : table.keys) labels.push_back(column.label);
  EXPECT_THAT(labels, ElementsAre("command", "load", "a * 2"));
  ASSERT_TRUE(table.keys[0].arg) << "a sum has no argument, and gets a type for its names";
  EXPECT_EQ(table.keys[0].arg->declaration->enumerators, (std::vector<Enumerator>{{"query", 3}, {"prepare", 22}}));
  EXPECT_EQ(table.keys[0].arg->type, (Type{.size = 8, .kind = TypeKind::enumeration}));
  EXPECT_TRUE(table.keys[1].arg->declaration->enumerators.empty());
  EXPECT_FALSE(table.keys[2].arg);
  EXPECT_EQ(parse_expressions("a, b as x y").error().message, "'x y': 'x y' is no name");
  EXPECT_EQ(parse_expressions("a as x:{1=y, z}").error().column, 5U);
}

TEST(Keys, of_texts_have_the_room_that_is_asked_for) {
  EXPECT_EQ(planned_by("str(a)").keys[0].size, 64U);
  const PlannedTable table = planned_by("str(a), b, str(c)", 408);
  EXPECT_EQ(table.keys[0].size, 200U);
  EXPECT_EQ(table.keys[2].offset, 208U);
  EXPECT_THAT(planned("str(a)", 72, true).error().message, HasSubstr("64 is what rows of the kernel have"));
}

/// Arguments of which the first is a real.
std::vector<Arg> a_real(ExpressionType type) {
  std::vector<Arg> args = six_arguments(true);
  args[0].type = {.size = type == ExpressionType::real32 ? 4U : 8U, .is_signed = true, .kind = TypeKind::floating};
  return args;
}

/// The key that a real has by an expression about "a"; nothing: none.
std::optional<std::int64_t> key_of(const Expression& key, ExpressionType type, double real) {
  const auto typed = TypedExpression::check(key, a_real(type), {0});
  EXPECT_TRUE(typed) << typed.error().message;
  NumbersOfHit hit;
  hit.numbers.assign(6, type == ExpressionType::real32 ? std::bit_cast<std::uint32_t>(static_cast<float>(real))
                                                       : std::bit_cast<std::uint64_t>(real));
  const auto got = evaluate(*typed, hit);
  return got ? std::optional(static_cast<std::int64_t>(*got)) : std::nullopt;
}

/// Reals of that type: of all sizes, and the odd ones.
std::vector<double> telling_reals(ExpressionType type) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> reals{0.0, -0.0, 1, -1, 0.1, 0.3, -0.7, 1e-40, 5e-324, -2.5e-308, 1.7e308, infinity, -infinity};
  ExpressionWriter writer(754, false);
  for (int i = 0; i < 3000; ++i) {
    const double real = i % 2 == 0 ? std::bit_cast<double>(writer.number())
                                   : static_cast<double>(static_cast<std::int64_t>(writer.number() >> 40)) / 4096;
    if (real == real) reals.push_back(real);
  }
  if (type == ExpressionType::real32)
    for (double& real : reals) real = static_cast<float>(real);
  return reals;
}

constexpr std::array kRealTypes{ExpressionType::real32, ExpressionType::real64};

TEST(RealBuckets, of_powers_of_2_have_the_reals_that_are_put_in_them) {
  for (const ExpressionType type : kRealTypes) {
    for (unsigned sub_bits = 0; sub_bits <= 4; ++sub_bits) {
      const Expression key = log2_buckets(*parse_expression("a"), sub_bits);
      for (const double real : telling_reals(type)) {
        const RealBucket bucket = RealBucket::log2(type, key_of(key, type, real).value(), sub_bits);
        const bool there = real > 0   ? bucket.first <= real && (real < bucket.end || bucket.first == bucket.end)
                           : real < 0 ? bucket.end >= real && (real > bucket.first || bucket.first == bucket.end)
                                      : bucket.first == 0 && bucket.end == 0;
        EXPECT_TRUE(there) << real << " in " << bucket.first << " to " << bucket.end;
        const bool normal =
            type == ExpressionType::real32 ? std::isnormal(static_cast<float>(real)) : std::isnormal(real);
        if (normal && std::isfinite(bucket.end) && std::isfinite(bucket.first)) {
          EXPECT_LE(bucket.end - bucket.first, std::ldexp(std::abs(real), -static_cast<int>(sub_bits))) << real;
        }
      }
      EXPECT_FALSE(key_of(key, type, std::numeric_limits<double>::quiet_NaN()));
    }
  }
}

TEST(RealBuckets, of_equal_width_end_at_the_reals_nearest_to_decimal_numbers) {
  const auto key = linear_buckets(*parse_expression("a"), -2, 15, 1, 1);  // from -0.2 to 1.5 by 0.1
  ASSERT_TRUE(key) << key.error().message;
  const std::array bounds{-0.2, -0.1, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5};
  for (const ExpressionType type : kRealTypes) {
    std::vector<double> reals = telling_reals(type);
    for (const double bound : bounds) {
      const double own = type == ExpressionType::real32 ? static_cast<float>(bound) : bound;
      for (const double to : {-INFINITY, INFINITY})
        reals.push_back(type == ExpressionType::real32
                            ? std::nextafterf(static_cast<float>(own), static_cast<float>(to))
                            : std::nextafter(own, to));
      reals.push_back(own);
    }
    for (const double real : reals) {
      const auto passed = std::ranges::count_if(bounds, [&](double bound) { return real >= bound; });
      const auto got = key_of(*key, type, real).value();
      EXPECT_EQ(got, passed == 0                                  ? kLowest
                     : passed == static_cast<long>(bounds.size()) ? kHighest
                                                                  : passed - 1)
          << real;
      const RealBucket bucket = RealBucket::linear(got, -2, 15, 1, 1);
      EXPECT_TRUE(bucket.first <= real && (real < bucket.end || std::isinf(real))) << real;
    }
    EXPECT_FALSE(key_of(*key, type, std::numeric_limits<double>::quiet_NaN()));
  }
}

TEST(RealBuckets, are_of_reals_only_and_not_too_many) {
  const std::vector<Arg> integers = six_arguments(true);
  const auto tenths = linear_buckets(*parse_expression("a"), 0, 15, 1, 1);
  EXPECT_THAT(TypedExpression::check(*tenths, integers, {0}).error().message, HasSubstr("a is no real"));
  const auto many = linear_buckets(*parse_expression("a"), 0, 1025, 1);
  EXPECT_TRUE(TypedExpression::check(*many, integers, {0}));
  EXPECT_THAT(TypedExpression::check(*many, a_real(ExpressionType::real64), {0}).error().message,
              HasSubstr("more than 1024 ranges of a real"));
  EXPECT_FALSE(linear_buckets(*parse_expression("a"), 0, 15, 1, 19));
}

TEST(RealSum, is_that_of_its_numbers_in_whatever_order_and_rounded_once) {
  constexpr double infinity = std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::max();
  const auto sum_of = [](const std::vector<double>& numbers) {
    RealSum sum;
    for (const double number : numbers) sum.add(number);
    return sum.value();
  };
  EXPECT_EQ(sum_of({}), 0);
  EXPECT_EQ(sum_of({1e308, 1, -1e308}), 1);
  EXPECT_EQ(sum_of({most, most, -most}), most) << "it goes beyond in between";
  EXPECT_EQ(sum_of({most, most}), infinity);
  EXPECT_EQ(sum_of({-most, -most, -1}), -infinity);
  EXPECT_EQ(sum_of({5e-324, 5e-324, -2e-308, 2e-308}), 1e-323);
  EXPECT_EQ(sum_of({9007199254740992, 1}), 9007199254740992) << "of two that are equally near the even one";
  EXPECT_EQ(sum_of({9007199254740994, 1}), 9007199254740996);
  EXPECT_EQ(sum_of({9007199254740992, 1, 1e-300}), 9007199254740994) << "a little more is nearer";
  EXPECT_EQ(sum_of({-9007199254740992, -1, -1e-300}), -9007199254740994);
  EXPECT_EQ(sum_of({infinity, -most}), infinity);
  EXPECT_NE(sum_of({infinity, -infinity}), sum_of({infinity, -infinity})) << "no number";
  // Of numbers that 128 bits hold, what these say.
  ExpressionWriter writer(88, false);
  std::vector<double> numbers;
  Int128 whole = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto part = static_cast<std::int64_t>(writer.number()) >> 11;  // 53 bits
    const int shift = static_cast<int>(writer.below(60));
    numbers.push_back(std::ldexp(static_cast<double>(part), shift - 40));
    whole += static_cast<Int128>(part) * (Int128{1} << shift);
  }
  const double wanted = std::ldexp(static_cast<double>(whole), -40);  // which is rounded once, too
  EXPECT_EQ(sum_of(numbers), wanted);
  std::ranges::reverse(numbers);
  EXPECT_EQ(sum_of(numbers), wanted);
  RealSum first, second;
  for (std::size_t i = 0; i < numbers.size(); ++i) (i % 3 == 0 ? first : second).add(numbers[i]);
  first.add(second);
  EXPECT_EQ(first.value(), wanted);
  first.subtract(second);
  first.add(second);
  EXPECT_EQ(first.value(), wanted);
  for (const double number : numbers) first.add(-number);
  EXPECT_EQ(first.value(), 0);
  second = {};
  second.add(7.5);
  second.scale(-2);
  EXPECT_EQ(second.value(), -15);
}

TEST(Buckets, of_powers_of_2_leave_no_gap) {
  for (unsigned sub_bits = 0; sub_bits <= 4; ++sub_bits) {
    const std::int64_t last = (std::int64_t{65 - sub_bits} << sub_bits) - 1;  // of 2^64 - 1
    EXPECT_TRUE(Bucket::log2(last, sub_bits).last == (Int128{1} << 64) - 1);
    for (std::int64_t key = -last; key < last; ++key)
      EXPECT_TRUE(Bucket::log2(key, sub_bits).last + 1 == Bucket::log2(key + 1, sub_bits).first) << key;
  }
}

TEST(Buckets, of_equal_width_have_the_numbers_that_are_put_in_them_and_end_with_all_beyond) {
  const auto key = linear_buckets(*parse_expression("a"), -100, 90, 25);
  ASSERT_TRUE(key);
  for (std::int64_t number = -200; number < 200; ++number) {
    const Bucket bucket = Bucket::linear(key_of(*key, static_cast<std::uint64_t>(number)), -100, 90, 25);
    EXPECT_TRUE(bucket.first <= number && number <= bucket.last) << number;
    const bool beyond = number < -100 || number >= 90;
    EXPECT_EQ(bucket.first == Int128{kLowest} || bucket.last > Int128{kHighest}, beyond) << number;
  }
  EXPECT_EQ(key_of(*key, static_cast<std::uint64_t>(kLowest)), kLowest);
  EXPECT_EQ(key_of(*key, ~0ULL, false), kHighest) << "the largest unsigned number is not -1";
  EXPECT_TRUE(Bucket::linear(kHighest, -100, 90, 25).last == Int128{~0ULL}) << "which is in the last one";
}

TEST(Buckets, of_no_width_or_without_an_end_are_refused) {
  EXPECT_FALSE(linear_buckets(*parse_expression("a"), 0, 10, 0));
  EXPECT_FALSE(linear_buckets(*parse_expression("a"), 10, 10, 1));
  const auto wide = linear_buckets(*parse_expression("a"), kLowest, kHighest, 1);
  ASSERT_FALSE(wide) << "further than 63 bits";
  EXPECT_THAT(wide.error().message, HasSubstr("from -9223372036854775808 to 9223372036854775807: they are at most "
                                              "9223372036854775807 wide"));
}

TEST(ParseExpressions, parts_them_at_commas_that_are_of_none_of_them) {
  const auto parsed = parse_expressions(" pid, str(a) , b in {1, 2}, a ? 1 : 2");
  ASSERT_TRUE(parsed) << parsed.error().message;
  std::vector<std::string> texts;
  for (const Expression& each : *parsed) texts.push_back(each.text);
  EXPECT_THAT(texts, ElementsAre("pid", "str(a)", "b in {1, 2}", "a ? 1 : 2"));
}

TEST(ParseExpressions, says_where_one_of_them_goes_wrong) {
  for (const char* wrong : {"a,", ",a", "a,,b", "", "a, b +"}) {
    const auto parsed = parse_expressions(wrong);
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_THAT(parsed.error().message, HasSubstr("expected a value at column")) << wrong;
  }
}

/// A question over six_arguments(): hits with b > 10, by a % 3 and the text c points to, with b.
TypedExpression a_question() {
  TableQuestion table{.keys = *parse_expressions("a % 3, str(c)"), .value = *parse_expression("b")};
  const Expression where = *parse_expression("b > 10");
  const Expression row = expr::row_of(&where, table);
  std::vector<Arg> args = six_arguments(true);
  args[2].type = {.size = 8, .kind = TypeKind::text};
  std::vector<std::size_t> places;
  for (const ValuePath& path : row.values) places.push_back(static_cast<std::size_t>(path.text[0] - 'a'));
  auto typed = TypedExpression::check(row, args, places);
  EXPECT_TRUE(typed) << typed.error().message;
  return std::move(*typed);
}

struct TextHit : NumbersOfHit {
  std::string said = {};
  [[nodiscard]] std::optional<std::string_view> text(std::size_t position) const override {
    return (unread >> position & 1) != 0 ? std::nullopt : std::optional<std::string_view>(said);
  }
};

TEST(TableBuilder, puts_hits_into_the_rows_of_their_keys) {
  const TypedExpression question = a_question();
  TableBuilder builder(PlannedTable{.keys = {}, .value = ExpressionType::signed_integer, .max_rows = 5});
  ExpressionWriter writer(9, false);
  std::map<std::pair<int, std::string>, std::vector<std::int64_t>> wanted;
  std::map<TableBuilder::Added, int> became;
  for (int i = 0; i < 1000; ++i) {
    TextHit hit;
    hit.numbers = {static_cast<std::uint64_t>(i % 7), static_cast<std::uint64_t>(i % 50), 1, 0, 0, 0};
    hit.said = i % 2 == 0 ? "even" : "odd";
    if (i % 11 == 0) hit.unread = 4;
    const auto added = builder.add(question, hit);
    ++became[added];
    if (added == TableBuilder::Added::row) wanted[{i % 7 % 3, hit.said}].push_back(i % 50);
    EXPECT_EQ(added == TableBuilder::Added::rejected, i % 50 <= 10) << i;
  }
  EXPECT_EQ(builder.rows().size(), 5U) << "of 6 there was no room for one";
  EXPECT_GT(became[TableBuilder::Added::table_full], 0);
  EXPECT_GT(became[TableBuilder::Added::undecided], 0);
  for (const TableRow& row : builder.rows()) {
    const auto& values =
        wanted[{static_cast<int>(std::get<std::int64_t>(row.keys[0])), std::get<TableText>(row.keys[1]).bytes}];
    EXPECT_EQ(row.count, values.size());
    EXPECT_TRUE(row.sum == std::accumulate(values.begin(), values.end(), Int128{0}));
    EXPECT_TRUE(row.minimum == *std::ranges::min_element(values));
    EXPECT_TRUE(row.maximum == *std::ranges::max_element(values));
  }
}

TEST(TableBuilder, counts_a_hit_as_often_as_it_weighs) {
  const TypedExpression question = a_question();
  TableBuilder once(PlannedTable{.keys = {}, .value = ExpressionType::signed_integer, .max_rows = 99});
  TableBuilder weighed(PlannedTable{.keys = {}, .value = ExpressionType::signed_integer, .max_rows = 99});
  for (int i = 0; i < 1000; ++i) {
    TextHit hit;
    hit.numbers = {static_cast<std::uint64_t>(i % 7), static_cast<std::uint64_t>(i % 50), 1, 0, 0, 0};
    hit.said = i % 2 == 0 ? "even" : "odd";
    const auto added = once.add(question, hit);
    EXPECT_EQ(weighed.add(question, hit, 2.5), added);
  }
  const auto rows = weighed.rows();
  ASSERT_EQ(rows.size(), once.rows().size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const TableRow row = once.rows()[i];
    EXPECT_EQ(rows[i].count, (row.count * 5 + 1) / 2);
    EXPECT_TRUE(rows[i].sum == (row.sum * 5 + 1) / 2);
    EXPECT_TRUE(rows[i].maximum == row.maximum);
  }
}

TEST(TableRow, tells_of_the_other_hits_when_some_are_taken_away) {
  TableRow all{.count = 3, .sum = 12, .minimum = 1, .maximum = 9};
  TableRow some{.count = 1, .sum = 9, .minimum = 9, .maximum = 9};
  for (const double real : {1e300, 1.0, 2.5}) all.real_sum.add(real);
  some.real_sum.add(1e300);
  all.subtract(some);
  EXPECT_EQ(all.count, 2U);
  EXPECT_TRUE(all.sum == 3 && all.minimum == 1 && all.maximum == 9);
  EXPECT_EQ(all.real_sum.value(), 3.5);
}

TEST(TableRow, tells_of_so_many_times_as_many_hits_when_it_is_scaled) {
  TableRow row{.count = 7, .sum = -15, .minimum = -9, .maximum = 4};
  row.scale(1000);
  EXPECT_EQ(row.count, 7000U);
  EXPECT_TRUE(row.sum == -15000);
  row.scale(1.5);
  EXPECT_EQ(row.count, 10500U);
  EXPECT_TRUE(row.sum == -22500 && row.minimum == -9 && row.maximum == 4);
}

}  // namespace
}  // namespace usdt::test
