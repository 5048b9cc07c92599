// SPDX-License-Identifier: BSD-2-Clause
// What one user may have within an hour: no more at once, in whatever process, and it comes back little by little.
#include "tools/usdt-broker/budgets.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace usdt_broker {
namespace {

bool nobody(uid_t /*user*/) { return false; }

TEST(Allowance, IsTakenByAllProcessesOfAUser) {
  Budgets budgets;
  Allowance& places = budgets.of(1000, nobody)->places;
  EXPECT_FALSE(places.take(101, 100));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(places.take(60, 100) ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(places.take(41, 100));
  EXPECT_TRUE(places.take(40, 100));
  EXPECT_FALSE(places.take(1, 100));
  EXPECT_TRUE(budgets.of(1001, nobody)->places.take(100, 100)) << "another user";
  EXPECT_TRUE(budgets.of(1000, nobody)->map_bytes.take(100, 100)) << "something else of the same user";
}

TEST(Allowance, ComesBackLittleByLittle) {
  Budgets budgets;
  Allowance& bytes = budgets.of(1000, nobody)->map_bytes;
  constexpr std::uint64_t most = 36'000;  // 10 a second
  ASSERT_TRUE(bytes.take(most, most));
  EXPECT_FALSE(bytes.take(most / 2, most));
  const auto began = std::chrono::steady_clock::now();
  while (!bytes.take(10, most)) {
    ASSERT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_FALSE(bytes.take(most / 2, most)) << "not all at once";
}

/// Whoever has subordinate users (/etc/subuid) comes as thousands of them.
TEST(Budgets, HaveRoomForOthersHoweverManyUsersCameAndTookNothing) {
  Budgets budgets;
  for (uid_t user = 100'000; user < 100'000 + 3 * Budgets::kMostUsers; ++user)
    ASSERT_NE(budgets.of(user, nobody), nullptr) << user;
}

TEST(Budgets, KeepWhatUsersHaveTakenAndThoseWhoAreServed) {
  Budgets budgets;
  Budget* const served = budgets.of(1000, nobody);
  ASSERT_TRUE(budgets.of(1001, nobody)->map_bytes.take(7, 10));
  const auto is_served = [](uid_t user) { return user == 1000; };
  for (uid_t user = 2000; user < 2000 + 2 * Budgets::kMostUsers; ++user)
    ASSERT_NE(budgets.of(user, is_served), nullptr) << user;
  EXPECT_EQ(budgets.of(1000, is_served), served);
  EXPECT_FALSE(budgets.of(1001, is_served)->map_bytes.take(7, 10)) << "forgotten what user 1001 has taken";
}

TEST(Budgets, AreRefusedOnlyWhereAllUsersHaveTakenOfTheirs) {
  Budgets budgets;
  for (uid_t user = 0; user < Budgets::kMostUsers; ++user)
    ASSERT_TRUE(budgets.of(user, nobody)->places.take(2, 100'000'000));
  EXPECT_EQ(budgets.of(Budgets::kMostUsers, nobody), nullptr);
  EXPECT_NE(budgets.of(5, nobody), nullptr) << "one who is known";
}

}  // namespace
}  // namespace usdt_broker
