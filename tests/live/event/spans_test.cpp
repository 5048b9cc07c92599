// SPDX-License-Identifier: BSD-2-Clause
// Spans that a Tracer's programs pair, by each carrier. This process passes its own probes, and knows with what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "by_carrier.hpp"
#include "probed.hpp"
#include "usdt/usdt.hpp"

namespace usdt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// What a span said: the number where it began, and the one where it ended.
using Numbers = std::pair<std::int64_t, std::uint64_t>;

class Spans : public ByCarrier {
 protected:
  /// From own:typed to own:memory.
  static Result<Tracer> start(PlanOptions options = {}, const SpanPairing& pairing = {}, std::uint32_t most = 8192) {
    const SearchScope here{.targets = {}, .pids = {::getpid()}, .program = {}};
    auto begins = select({*ProbePattern::parse("own:typed")}, here);
    if (!begins) return tl::unexpected(begins.error());
    auto ends = select({*ProbePattern::parse("own:memory")}, here);
    if (!ends) return tl::unexpected(ends.error());
    options.scope = *OneProcess::of(::getpid());
    auto plan = plan_spans(*begins, *ends, kernel_facts(), options, pairing);
    if (!plan) return tl::unexpected(plan.error());
    return Tracer::start(std::move(*plan), {.carrier = GetParam(), .max_open_calls = most});
  }

  static void begin(int number, const char* text = "began") { probed::typed(text, number, 7); }
  static void end(std::uint64_t number, const char* text = "ended") { probed::memory(&number, text); }

  static std::vector<Numbers> taken(Tracer& tracer) {
    tracer.detach();
    std::vector<Numbers> numbers;
    tracer.drain([&](const Event& span) {
      const std::size_t first = find_arg(span.plan().args[span.site().args], std::uint8_t{1}).value();
      const std::size_t last = find_arg(span.plan().args[span.site().args], "end.arg0").value();
      numbers.emplace_back(std::get<std::int64_t>(span.value(first)), std::get<std::uint64_t>(span.value(last)));
      EXPECT_GT(span.duration(), 0U);
    });
    return numbers;
  }

  /// The accounts of the probe that begins and of the one that ends.
  static std::pair<ProbeCounts, ProbeCounts> accounts(const Tracer& tracer) {
    const auto counts = tracer.counts();
    return {counts[0], counts[1]};
  }
};

TEST_P(Spans, within_each_other_end_the_innermost_and_the_accounts_are_exact) {
  auto tracer = start();
  ASSERT_TRUE(tracer) << tracer.error().message;
  end(99);
  begin(1);
  begin(2);
  begin(3);
  end(30);
  end(20);
  end(10);
  begin(4);
  EXPECT_THAT(taken(*tracer), ElementsAre(Numbers(3, 30), Numbers(2, 20), Numbers(1, 10)));
  const auto [of_begin, of_end] = accounts(*tracer);
  EXPECT_EQ(of_begin.hits, 4U);
  EXPECT_EQ(of_begin.paired, 3U);
  EXPECT_EQ(of_begin.unfinished, 1U);
  EXPECT_EQ(of_end.hits, 4U);
  EXPECT_EQ(of_end.delivered, 3U);
  EXPECT_EQ(of_end.unmatched, 1U);
}

TEST_P(Spans, are_paired_by_what_both_ends_say_in_whatever_thread) {
  auto tracer = start({}, {*parse_expressions("arg1"), *parse_expressions("arg0 - 100")});
  ASSERT_TRUE(tracer) << tracer.error().message;
  begin(1);
  begin(2);
  begin(3);
  std::thread([] {
    end(102);
    end(101);
    end(101);
  }).join();
  EXPECT_THAT(taken(*tracer), ElementsAre(Numbers(2, 102), Numbers(1, 101)));
  EXPECT_EQ(accounts(*tracer).first.unfinished, 1U);
  EXPECT_EQ(accounts(*tracer).second.unmatched, 1U);
}

TEST_P(Spans, count_only_where_the_answer_about_both_ends_is_yes) {
  PlanOptions options;
  options.where = std::make_shared<const Expression>(*parse_expression("arg1 > 1 && end.arg0 < 30 && duration < 1h"));
  auto tracer = start(options);
  ASSERT_TRUE(tracer) << tracer.error().message;
  for (const int number : {1, 2, 3}) {
    begin(number);
    end(static_cast<std::uint64_t>(10 * number));
  }
  EXPECT_THAT(taken(*tracer), ElementsAre(Numbers(2, 20)));
  EXPECT_EQ(accounts(*tracer).second.rejected, 2U);
}

TEST_P(Spans, become_rows_of_a_table_about_both_ends) {
  PlanOptions options;
  options.table = std::make_shared<const TableQuestion>(
      TableQuestion{.keys = *parse_expressions("arg1 % 2"), .value = *parse_expression("end.arg0 - arg1")});
  auto tracer = start(options);
  ASSERT_TRUE(tracer) << tracer.error().message;
  for (int number = 0; number < 10; ++number) {
    begin(number);
    end(static_cast<std::uint64_t>(3 * number));
  }
  tracer->detach();
  const auto rows = tracer->table();
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_TRUE((*rows)[0].count == 5 && (*rows)[0].sum == 2 * (0 + 2 + 4 + 6 + 8));
  EXPECT_TRUE((*rows)[1].count == 5 && (*rows)[1].sum == 2 * (1 + 3 + 5 + 7 + 9));
  EXPECT_EQ(accounts(*tracer).second.delivered, 10U);
}

TEST_P(Spans, have_the_texts_of_both_ends) {
  PlanOptions options;
  options.texts.numbers = {0};
  options.texts.names = {"end.arg1"};
  auto tracer = start(options);
  ASSERT_TRUE(tracer) << tracer.error().message;
  begin(1, "the first text");
  end(2, "the last text");
  tracer->detach();
  std::vector<std::string> texts;
  tracer->drain([&](const Event& span) {
    for (const char* name : {"arg0", "end.arg1"}) {
      const auto path = parse_value_path(name);
      const ArgName wanted = path->steps.empty() ? path->root : ArgName(path->text);
      const auto text = span.text(find_arg(span.plan().args[span.site().args], wanted).value());
      texts.emplace_back(text ? std::string(text->bytes) : text.error().message);
    }
  });
  EXPECT_THAT(texts, ElementsAre("the first text", "the last text"));
}

TEST_P(Spans, are_asked_about_texts_as_they_were_where_they_began) {
  PlanOptions options;
  options.where = std::make_shared<const Expression>(*parse_expression("str(arg0) =~ \"the *st text\""));
  auto tracer = start(options);
  ASSERT_TRUE(tracer) << tracer.error().message;
  for (const char* said : {"the first text", "the second text", "the last text"}) {
    std::string text = said;
    begin(static_cast<int>(text.size()), text.c_str());
    text.assign(text.size(), '-');
    end(text.size());
  }
  EXPECT_THAT(taken(*tracer), ElementsAre(Numbers(14, 14), Numbers(13, 13)));
  EXPECT_EQ(accounts(*tracer).second.rejected, 1U);
}

TEST_P(Spans, become_rows_of_texts_as_they_were_where_they_began) {
  PlanOptions options;
  options.table = std::make_shared<const TableQuestion>(
      TableQuestion{.keys = *parse_expressions("str(arg0)"), .value = *parse_expression("end.arg0")});
  auto tracer = start(options);
  ASSERT_TRUE(tracer) << tracer.error().message;
  for (const char* said : {"one", "two", "one"}) {
    std::string text = said;
    begin(1, text.c_str());
    text.assign(text.size(), '-');
    end(10);
  }
  tracer->detach();
  const auto rows = tracer->table();
  ASSERT_TRUE(rows) << rows.error().message;
  std::map<std::string, std::uint64_t> counts;
  for (const TableRow& row : *rows) counts[std::get<TableText>(row.keys[0]).bytes] = row.count;
  EXPECT_THAT(counts, ElementsAre(std::pair("one", 2U), std::pair("two", 1U)));
}

TEST_P(Spans, that_have_not_ended_are_in_flight) {
  auto tracer = start();
  ASSERT_TRUE(tracer) << tracer.error().message;
  const auto numbers = [&] {
    std::vector<std::int64_t> open;
    for (const OwnedEvent& each : tracer->in_flight()) {
      const auto number = find_arg(each->plan().args[each->site().args], std::uint8_t{1});
      open.push_back(std::get<std::int64_t>(each->value(number.value())));
      EXPECT_GT(each->duration(), 0U);
      EXPECT_EQ(each->pid(), ::getpid());
    }
    return open;
  };
  EXPECT_THAT(numbers(), ElementsAre());
  for (const int number : {1, 2, 3}) begin(number);
  EXPECT_THAT(numbers(), ElementsAre(1, 2, 3)) << "the oldest first";
  end(30);
  EXPECT_THAT(numbers(), ElementsAre(1, 2));
  begin(4);
  EXPECT_THAT(numbers(), ElementsAre(1, 2, 4));
  for (int i = 0; i < 3; ++i) end(0);
  EXPECT_THAT(numbers(), ElementsAre());
}

TEST_P(Spans, that_have_no_room_are_given_up_and_counted) {
  auto tracer = start({}, {}, 2);
  ASSERT_TRUE(tracer) << tracer.error().message;
  for (int number = 0; number < 5; ++number) begin(number);
  tracer->detach();
  const auto [of_begin, of_end] = accounts(*tracer);
  EXPECT_GE(of_begin.abandoned, 3U);
  EXPECT_EQ(of_begin.calls_full + of_begin.abandoned + of_begin.unfinished, 5U);
  EXPECT_EQ(of_end.hits, 0U);
}

TEST_P(Spans, that_are_given_up_take_no_end_of_those_around_them_nor_give_them_theirs) {
  auto tracer = start({}, {}, 2);
  ASSERT_TRUE(tracer) << tracer.error().message;
  constexpr std::uint64_t depth = 8;
  for (std::uint64_t number = 1; number <= depth; ++number) begin(static_cast<int>(number));
  for (std::uint64_t number = depth; number > 0; --number) end(10 * number);
  begin(100);
  end(1000);
  const std::vector<Numbers> spans = taken(*tracer);
  for (const auto& [number, last] : spans) EXPECT_EQ(10 * static_cast<std::uint64_t>(number), last);
  EXPECT_THAT(spans, testing::Contains(Numbers(100, 1000)));
  const auto [of_begin, of_end] = accounts(*tracer);
  EXPECT_EQ(of_begin.paired, spans.size());
  EXPECT_EQ(of_begin.paired + of_begin.calls_full + of_begin.abandoned + of_begin.unfinished, depth + 1);
  EXPECT_EQ(of_end.unmatched, depth + 1 - spans.size());
}

INSTANTIATE_TEST_SUITE_P(EachCarrier, Spans, each_carrier(), carrier_name);

TEST(SpanPlans, say_why_two_points_make_no_span) {
  const SearchScope here{.targets = {}, .pids = {::getpid()}, .program = {}};
  const auto typed = select({*ProbePattern::parse("own:typed")}, here);
  const auto memory = select({*ProbePattern::parse("own:memory")}, here);
  ASSERT_TRUE(typed && memory);
  const auto why = [&](const Selection& end, const PlanOptions& options, const SpanPairing& pairing) {
    const auto plan = plan_spans(*typed, end, kernel_facts(), options, pairing);
    return plan ? std::string("it does") : plan.error().message;
  };
  EXPECT_THAT(why(*typed, {}, {}), HasSubstr("both begins and ends"));
  EXPECT_THAT(why(*memory, {}, {*parse_expressions("comm"), *parse_expressions("arg0")}), HasSubstr("same types"));
  PlanOptions options;
  options.where = std::make_shared<const Expression>(*parse_expression("end.arg7 == 1"));
  EXPECT_THAT(why(*memory, options, {}), HasSubstr("end.arg7"));
}

}  // namespace
}  // namespace usdt
