// SPDX-License-Identifier: BSD-2-Clause
#include "export/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "export/prometheus_text.hpp"

namespace usdt::exports::metrics {
namespace {

using prometheus::PageFormat;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(NameOf, MakesWordsOfAnyText) {
  EXPECT_EQ(name_of("arg0"), "arg0");
  EXPECT_EQ(name_of("str(arg0)"), "str_arg0");
  EXPECT_EQ(name_of("arg0 % 5"), "arg0_5");
  EXPECT_EQ(name_of("3com"), "_3com");
  EXPECT_EQ(name_of("->"), "key");
  EXPECT_EQ(name_of("req.size->\xc3\xa4"), "req_size");
}

TEST(LabelSets, KeepThoseThatCameFirst) {
  LabelSets sets(2);
  EXPECT_THAT(sets.admit({"a", "1"}), ElementsAre("a", "1"));
  EXPECT_THAT(sets.admit({"b", "1"}), ElementsAre("b", "1"));
  EXPECT_THAT(sets.admit({"c", "1"}), ElementsAre("other", "other"));
  EXPECT_THAT(sets.admit({"c", "1"}), ElementsAre("other", "other"));
  EXPECT_THAT(sets.admit({"a", "1"}), ElementsAre("a", "1"));
  EXPECT_EQ(sets.refused(), 1U) << "each once";
  static_cast<void>(sets.admit({"d", "1"}));
  EXPECT_EQ(sets.refused(), 2U);
}

/// The histogram of integers that the kernel's buckets make of `values`.
Histogram histogram_of(const std::vector<std::int64_t>& values, unsigned sub_bits) {
  std::map<std::int64_t, Histogram::Bucket> buckets;
  for (const std::int64_t value : values) {
    const std::int64_t most = std::int64_t{64} << sub_bits;
    for (std::int64_t key = -most; key <= most; ++key) {
      const Bucket range = Bucket::log2(key, sub_bits);
      if (value < range.first || value > range.last) continue;
      const auto [bucket, is_new] = buckets.try_emplace(key);
      if (is_new) bucket->second = {static_cast<double>(range.first), static_cast<double>(range.last), 0};
      ++bucket->second.count;
      break;
    }
  }
  Histogram histogram{.count = values.size(), .scale = sub_bits == 0 ? 0 : sub_bits - 1};
  for (const auto& [key, bucket] : buckets) histogram.buckets.push_back(bucket);
  return histogram;
}

std::vector<std::int64_t> some_values() {
  std::vector<std::int64_t> values{0, 1, -1, 2, -2, 255, 256, 257, -255, -256, -257, std::int64_t{1} << 40};
  std::mt19937_64 random(7);
  for (int n = 0; n < 400; ++n)
    values.push_back(static_cast<std::int64_t>(random()) >> std::uniform_int_distribution<>(20, 62)(random));
  return values;
}

class EachWidth : public ::testing::TestWithParam<unsigned> {};

TEST_P(EachWidth, CountsUpToABoundAreThoseOfTheValues) {
  const std::vector<std::int64_t> values = some_values();
  const Family family{"usdt_values", Kind::histogram, "", "", {{{}, histogram_of(values, GetParam())}}};
  const std::vector<double> bounds = bounds_of(family);
  ASSERT_TRUE(std::ranges::is_sorted(bounds));
  ASSERT_GT(bounds.size(), 40U);
  const auto counts = count_up_to(bounds, std::get<Histogram>(family.samples[0].value));
  for (std::size_t i = 0; i < bounds.size(); ++i)
    EXPECT_EQ(counts[i],
              std::ranges::count_if(values, [&](auto each) { return static_cast<double>(each) <= bounds[i]; }))
        << bounds[i];
  for (std::size_t i = 1; i < bounds.size(); ++i)
    EXPECT_LE(std::abs(bounds[i] - bounds[i - 1]), std::max({1.0, std::abs(bounds[i]), std::abs(bounds[i - 1])}))
        << "there is no gap before " << bounds[i];
}

TEST_P(EachWidth, NoValueIsAboveItsBucketOfEqualRatio) {
  std::vector<std::int64_t> values = some_values();
  const EqualRatios fine = put_in_equal_ratios(histogram_of(values, GetParam()));
  EXPECT_EQ(fine.zeros, std::ranges::count(values, 0));
  const double width = std::exp2(-static_cast<double>(GetParam()));
  std::vector<double> magnitudes;
  for (const std::int64_t value : values)
    if (value > 0) magnitudes.push_back(static_cast<double>(value));
  std::ranges::sort(magnitudes);
  std::size_t at = 0;
  for (const auto& [index, count] : fine.positive) {
    for (std::uint64_t n = 0; n < count; ++n, ++at) {
      const double ratio = std::log2(magnitudes[at]) * std::exp2(fine.scale);
      EXPECT_LE(ratio, index + 1 + 1e-9) << magnitudes[at];
      EXPECT_GT(std::log2(magnitudes[at] * (1 + width) + 1) * std::exp2(fine.scale), index - 1e-9) << magnitudes[at];
    }
  }
  EXPECT_EQ(at, magnitudes.size());
}

/// As Prometheus looks for a quantile (promql/quantile.go, bucketQuantile()): the first bucket begins at 0, if it ends
/// above that.
TEST_P(EachWidth, HasAnEmptyBucketBelowTheFirst) {
  for (const std::vector<std::int64_t>& values :
       {std::vector<std::int64_t>{700, 800}, {-700, -800}, {1}, {-1}, {-3, 40}, {0, 9}, {1 << 20}}) {
    const Family family{"usdt_values", Kind::histogram, "", "", {{{}, histogram_of(values, GetParam())}}};
    const std::vector<double> bounds = bounds_of(family);
    const auto counts = count_up_to(bounds, std::get<Histogram>(family.samples[0].value));
    const auto least = static_cast<double>(*std::ranges::min_element(values));
    const auto first = std::ranges::find_if(counts, [](std::uint64_t count) { return count > 0; });
    ASSERT_NE(first, counts.end());
    if (least == 0) continue;  // whose bucket has no width
    ASSERT_NE(first, counts.begin()) << least;
    const double begin = bounds[static_cast<std::size_t>(first - counts.begin()) - 1];
    EXPECT_LT(begin, least);
    EXPECT_GE(begin, least > 0 ? (least - 1) / 2 : 2 * least) << "no further than a power of 2";
  }
}

TEST(BoundsOf, EqualWidthsSayWhereTheyBegin) {
  const auto bounds = [](std::vector<Histogram::Bucket> buckets) {
    return bounds_of({"x", Kind::histogram, "", "", {{{}, Histogram{.buckets = std::move(buckets), .count = 2}}}});
  };
  EXPECT_THAT(bounds({{10, 19, 1}, {90, 99, 1}}), ElementsAre(9, 19, 89, 99));
  EXPECT_THAT(bounds({{0, 9, 1}, {10, 19, 1}}), ElementsAre(9, 19)) << "the first begins at 0";
  EXPECT_THAT(bounds({{-20, -11, 1}, {0, 9, 1}}), ElementsAre(-21, -11, -1, 9));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(bounds({{-kInfinity, 9, 1}, {20, kInfinity, 1}}), ElementsAre(9, 19));
}

TEST(WritePage, HasBoundsOfDurationsAsTheShortestDecimals) {
  const Histogram durations{
      .buckets = {{524288, 1048575, 1}, {1048576, 2097151, 2}}, .per_unit = 1e9, .count = 3, .scale = 0};
  const std::string page =
      prometheus::write_page({{"d", Kind::histogram, "seconds", "", {{{}, durations}}}}, PageFormat::text);
  EXPECT_THAT(page, HasSubstr("d_bucket{le=\"0.000524287\"} 0\nd_bucket{le=\"0.001048575\"} 1\n"
                              "d_bucket{le=\"0.002097151\"} 3\nd_bucket{le=\"+Inf\"} 3\n"));
}

INSTANTIATE_TEST_SUITE_P(Log2, EachWidth, ::testing::Values(0, 1, 2, 3, 4));

TEST(WritePage, ShowsNumbersExactly) {
  const Family family{
      "usdt_sum", Kind::gauge, "", "sum of \"x\\y\"", {{{{"k", "a\"b\\c\nd\x80"}}, Int128(1) << 70}, {{}, 0.1}}};
  const std::string page = prometheus::write_page({family}, PageFormat::text);
  EXPECT_THAT(page, HasSubstr("# TYPE usdt_sum gauge\n# HELP usdt_sum sum of \"x\\\\y\"\n"));
  EXPECT_THAT(page, HasSubstr("usdt_sum{k=\"a\\\"b\\\\c\\nd\xef\xbf\xbd"
                              "80\"} 1180591620717411303424\n"))
      << "no byte breaks a line";
  EXPECT_THAT(page, HasSubstr("usdt_sum 0.1\n"));
}

TEST(WritePage, NamesCountersAsEachFormatDoes) {
  const Family family{"usdt_hits", Kind::counter, "", "hits", {{{}, Int128(3)}}};
  EXPECT_EQ(prometheus::write_page({family}, PageFormat::text),
            "# TYPE usdt_hits_total counter\n# HELP usdt_hits_total hits\nusdt_hits_total 3\n");
  EXPECT_EQ(prometheus::write_page({family}, PageFormat::open_metrics),
            "# TYPE usdt_hits counter\n# HELP usdt_hits hits\nusdt_hits_total 3\n# EOF\n");
}

TEST(WritePage, HasWordsForWhatIsNoNumber) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Family family{
      "x", Kind::gauge, "", "", {{{{"n", "1"}}, kInfinity}, {{{"n", "2"}}, -kInfinity}, {{{"n", "3"}}, std::nan("")}}};
  const std::string page = prometheus::write_page({family}, PageFormat::text);
  for (const char* line : {"x{n=\"1\"} +Inf\n", "x{n=\"2\"} -Inf\n", "x{n=\"3\"} NaN\n"})
    EXPECT_THAT(page, HasSubstr(line));
}

TEST(ChooseFormat, TakesWhatTheClientPrefers) {
  using prometheus::choose_format;
  EXPECT_EQ(choose_format(""), PageFormat::text);
  EXPECT_EQ(choose_format("*/*"), PageFormat::text);
  EXPECT_EQ(choose_format("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"),
            PageFormat::open_metrics);
  EXPECT_EQ(choose_format("text/plain;q=0.9, application/openmetrics-text;q=0.3"), PageFormat::text);
  EXPECT_EQ(choose_format("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,"
                          "application/openmetrics-text;q=0.8,*/*;q=0.1"),
            PageFormat::protobuf);
  EXPECT_EQ(choose_format("application/vnd.google.protobuf;encoding=text"), PageFormat::text);
  EXPECT_EQ(choose_format(";;;,,,q=,;q=x"), PageFormat::text);
}

}  // namespace
}  // namespace usdt::exports::metrics
