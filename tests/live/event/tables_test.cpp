// SPDX-License-Identifier: BSD-2-Clause
// Tables that a Tracer's programs fill, by each carrier. This process passes its own probes, and knows with what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "by_carrier.hpp"
#include "probed.hpp"
#include "usdt/probe.h"
#include "usdt/usdt.hpp"

namespace usdt {
namespace {

/// Rows of own:typed by its text and `number % 3`.
using Rows = std::map<std::pair<std::string, std::int64_t>, TableRow>;

class Tables : public ByCarrier {
 protected:
  static Result<Tracer> start(TableQuestion table, const char* where = nullptr, const char* probe = "own:typed") {
    auto selection = select({*ProbePattern::parse(probe)}, {.targets = {}, .pids = {::getpid()}, .program = {}});
    if (!selection) return tl::unexpected(selection.error());
    PlanOptions options;
    options.scope = *OneProcess::of(::getpid());
    options.table = std::make_shared<const TableQuestion>(std::move(table));
    if (where != nullptr) options.where = std::make_shared<const Expression>(*parse_expression(where));
    auto plan = plan_attach(*selection, kernel_facts(), options);
    if (!plan) return tl::unexpected(plan.error());
    return Tracer::start(std::move(*plan), {.carrier = GetParam()});
  }

  static Rows rows_of(const Tracer& tracer) {
    const auto rows = tracer.table();
    EXPECT_TRUE(rows) << rows.error().message;
    Rows found;
    for (const TableRow& row : *rows)
      found[{std::get<TableText>(row.keys[0]).bytes, std::get<std::int64_t>(row.keys[1])}] = row;
    return found;
  }

  static const char* text_of(int i) { return i % 2 == 0 ? "even" : "odd"; }
};

TEST_P(Tables, have_the_hits_of_each_key_and_what_their_values_come_to) {
  auto tracer = start({.keys = *parse_expressions("str(arg0), arg1 % 3"), .value = *parse_expression("arg1 * 1000")});
  ASSERT_TRUE(tracer) << tracer.error().message;
  Rows wanted;
  for (int i = -50; i < 50; ++i) {
    probed::typed(text_of(i), i, 1);
    TableRow& row = wanted[{text_of(i), i % 3}];
    ++row.count;
    row.sum += i * 1000;
  }
  tracer->detach();
  const Rows rows = rows_of(*tracer);
  EXPECT_EQ(rows.size(), wanted.size());
  for (const auto& [keys, row] : wanted) {
    ASSERT_TRUE(rows.contains(keys)) << keys.first << " " << keys.second;
    EXPECT_EQ(rows.at(keys).count, row.count) << keys.first << " " << keys.second;
    EXPECT_TRUE(rows.at(keys).sum == row.sum) << keys.first << " " << keys.second;
  }
  EXPECT_EQ(tracer->counts().front().delivered, 100U);
}

TEST_P(Tables, have_no_hit_that_is_not_meant_or_whose_key_cannot_be_read) {
  auto tracer = start({.keys = *parse_expressions("str(arg0), arg1 % 3")}, "arg1 > 4");
  ASSERT_TRUE(tracer) << tracer.error().message;
  for (int i = 0; i < 20; ++i) probed::typed(i == 7 ? nullptr : text_of(i), i, 1);
  tracer->detach();
  std::uint64_t in_rows = 0;
  for (const auto& [keys, row] : rows_of(*tracer)) in_rows += row.count;
  const ProbeCounts counts = tracer->counts().front();
  EXPECT_EQ(in_rows, 14U);
  EXPECT_EQ(counts.delivered, 14U);
  EXPECT_EQ(counts.rejected, 5U);
  EXPECT_EQ(counts.undecided, 1U);
}

TEST_P(Tables, have_extremes_where_the_kernel_can_exchange_atomically) {
  auto tracer =
      start({.keys = *parse_expressions("str(arg0), arg2"), .value = *parse_expression("arg1"), .extremes = true});
  if (!tracer && tracer.error().kind == ErrorKind::not_supported) {
    EXPECT_THAT(tracer.error().message, testing::HasSubstr("Linux 5.12")) << tracer.error().message;
    GTEST_SKIP() << tracer.error().message;
  }
  ASSERT_TRUE(tracer) << tracer.error().message;
  for (const int i : {3, -17, 12, 2'000'000'000, -2'000'000'000, 5}) probed::typed("all", i, 7);
  tracer->detach();
  const Rows rows = rows_of(*tracer);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_TRUE(rows.begin()->second.minimum == -2'000'000'000);
  EXPECT_TRUE(rows.begin()->second.maximum == 2'000'000'000);
}

TEST_P(Tables, have_texts_as_long_as_they_are_said_to_be) {
  auto tracer =
      start({.keys = *parse_expressions("what, number")}, R"(what != "a\0b" && what =~ "a*")", "own:measured");
  ASSERT_TRUE(tracer) << tracer.error().message;
  using namespace std::string_view_literals;
  constexpr std::string_view all = "a\0b and so on, for more than there is room for in a key of a table"sv;
  const std::int64_t number = 7;
  Rows wanted;
  for (std::size_t length = 0; length < all.size(); ++length) {
    const std::string_view what = all.substr(0, length);
    USDT_PROBE(own, measured, what, number);
    if (length > 0 && length != 3) ++wanted[{std::string(what.substr(0, 55)), number}].count;
  }
  tracer->detach();
  const Rows rows = rows_of(*tracer);
  EXPECT_EQ(rows.size(), wanted.size());
  for (const auto& [keys, row] : wanted) {
    ASSERT_TRUE(rows.contains(keys)) << keys.first;
    EXPECT_EQ(rows.at(keys).count, row.count) << keys.first;
  }
  EXPECT_EQ(tracer->counts().front().rejected, 2U);
  EXPECT_EQ(tracer->counts().front().undecided, 0U);
}

INSTANTIATE_TEST_SUITE_P(EachCarrier, Tables, each_carrier(), carrier_name);

}  // namespace
}  // namespace usdt
