// SPDX-License-Identifier: BSD-2-Clause
#include "attach/attached_sites.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace usdt {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr auto kMulti = Backend::uprobe_multi;
constexpr auto kReturn = Backend::uprobe_return;

TEST(AttachedSites, of_a_file_are_removed_from_each_backend_that_attached_some) {
  const Index<PlannedFile> first = 0, second = 1;
  AttachedSites sites;
  sites.add(kMulti, first, 3);
  sites.add(kReturn, first, 2);
  sites.add(kMulti, second, 10);
  sites.add(Backend::kprobe_multi, std::nullopt, 5);
  EXPECT_EQ(sites.count(), 20U);
  EXPECT_EQ(sites.remove(first), 5U);
  EXPECT_THAT(sites.by_backend(), ElementsAre(Pair(kMulti, 10U), Pair(kReturn, 0U), Pair(Backend::kprobe_multi, 5U)));
  EXPECT_EQ(sites.remove(first), 0U) << "a second time";
  EXPECT_EQ(sites.count(), 15U);
  sites.remove_all();
  EXPECT_EQ(sites.count(), 0U);
  EXPECT_EQ(sites.remove(second), 0U);
}

}  // namespace
}  // namespace usdt
