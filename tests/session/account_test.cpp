// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/account.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace usdt {
namespace {

/// An account in which each number is another one.
Account numbered() {
  Account account;
  std::uint64_t next = 1;
  for (const CountInfo& count : counts()) account.*count.member = next++;
  return account;
}

TEST(Counts, are_all_numbers_of_an_account_each_once) {
  // What is no number of its own: ProbeCounts::missed, which may be unknown.
  const std::size_t numbers = (sizeof(Account) - sizeof(std::optional<std::uint64_t>)) / sizeof(std::uint64_t);
  EXPECT_EQ(counts().size(), numbers) << "a number without a row";
  std::set<std::string_view> names;
  for (const CountInfo& count : counts()) {
    EXPECT_TRUE(names.insert(count.name).second) << count.name;
    EXPECT_FALSE(count.words.empty()) << count.name;
  }
  std::set<std::uint64_t> values;
  const Account account = numbered();
  for (const CountInfo& count : counts()) EXPECT_TRUE(values.insert(account.*count.member).second) << count.name;
}

TEST(Account, loses_hits_for_the_reasons_of_the_table) {
  const Account account = numbered();
  EXPECT_EQ(account.lost(), account.ring_full + account.calls_full + account.unfinished + account.abandoned +
                                account.discarded + account.not_written + account.folded_full + account.table_full);
}

TEST(Account, tells_spans_that_are_in_flight_from_calls_that_did_not_end) {
  Account account;
  account.unfinished = 5;
  account.abandoned = 3;
  account.given_up = 2;
  const auto told = [&](std::string_view name, bool spans) -> std::optional<std::pair<CountRole, std::uint64_t>> {
    for (const CountInfo& count : counts())
      if (const auto each = tell_count(count, account, spans); each && each->name == name)
        return std::pair(each->role, each->value);
    return std::nullopt;
  };
  EXPECT_EQ(told("unfinished", false), std::pair(CountRole::lost, std::uint64_t{6}));
  EXPECT_EQ(told("abandoned", false), std::pair(CountRole::lost, std::uint64_t{2}));
  EXPECT_EQ(told("in_flight", true), std::pair(CountRole::pairing, std::uint64_t{5}));
  EXPECT_EQ(told("abandoned", true), std::pair(CountRole::lost, std::uint64_t{3}));
  EXPECT_EQ(told("unfinished", true), std::nullopt);
  EXPECT_EQ(told("given_up", false), std::nullopt);
}

TEST(Counts, add_up_to_no_more_than_there_are_numbers) {
  ProbeCounts made_up;
  made_up.ring_full = UINT64_MAX;
  made_up.rejected = 1;
  EXPECT_EQ(sum_counts(made_up, {CountRole::lost}), UINT64_MAX);
  EXPECT_EQ(sum_counts(made_up, {CountRole::left_out}), 1U);
  EXPECT_EQ(sum_counts(made_up, {CountRole::lost, CountRole::left_out}), UINT64_MAX);
}

TEST(SessionSummary, adds_up_the_accounts_of_all_probes) {
  const SessionSummary summary{.probes = {numbered(), numbered()}};
  const Account total = summary.total();
  for (const CountInfo& count : counts()) EXPECT_EQ(total.*count.member, 2 * (numbered().*count.member)) << count.name;
}

TEST(Account, has_of_a_recording_the_hits_and_losses_of_then_and_its_own_events) {
  Account account;
  account.hits = 3;
  account.delivered = 2;
  account.rejected = 1;
  ProbeCounts then;
  then.hits = 10;
  then.delivered = 3;
  then.ring_full = 6;
  then.rejected = 1;
  then.missed = 4;
  account.add_recorded(then);
  EXPECT_EQ(account.hits, 10U);
  EXPECT_EQ(account.delivered, 2U);
  EXPECT_EQ(account.ring_full, 6U);
  EXPECT_EQ(account.rejected, 2U);
  EXPECT_EQ(account.missed, 4U);
}

}  // namespace
}  // namespace usdt
