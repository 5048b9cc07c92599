// SPDX-License-Identifier: BSD-2-Clause
// The page of metrics that is served: when numbers are read for it, and for whom it waits.
#include "export/metric_page.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

namespace usdt::exports {
namespace {

using std::chrono::milliseconds;

MetricPage::Families families(double value) { return {{"usdt_hits", metrics::Kind::counter, "", "", {{{}, value}}}}; }

double value_of(const MetricPage::Families& families) { return std::get<double>(families.at(0).samples.at(0).value); }

/// Answers as a session does that looks at its questions every few milliseconds, and counts how often it had to.
struct Session {
  explicit Session(MetricPage& of) : page(of), slot(of.add_slot("q")) {}
  void look_for(milliseconds time) {
    for (const auto end = MetricPage::Clock::now() + time; MetricPage::Clock::now() < end;) {
      if (page.is_asked(slot)) page.put(slot, families(++times));
      std::this_thread::sleep_for(milliseconds(2));
    }
  }
  MetricPage& page;
  std::size_t slot;
  double times = 0;
};

TEST(MetricPage, NumbersAreReadWhenSomebodyAsksForThemAndNotBefore) {
  MetricPage page;
  Session session(page);
  session.look_for(milliseconds(1200));
  EXPECT_EQ(session.times, 0) << "nobody has asked";
  std::jthread looking([&] { session.look_for(milliseconds(1500)); });
  EXPECT_EQ(value_of(*page.fresh_families()), 1) << "those of now";
  EXPECT_EQ(value_of(*page.fresh_families()), 1) << "within a second the same serve everybody";
  std::this_thread::sleep_for(milliseconds(1050));
  EXPECT_EQ(value_of(*page.fresh_families()), 2);
}

TEST(MetricPage, WhoIsLateIsNotWaitedForWithoutEnd) {
  MetricPage page;
  page.put(page.add_slot("q"), families(7));
  const auto began = MetricPage::Clock::now();
  EXPECT_EQ(value_of(*page.fresh_families()), 7) << "those of before";
  EXPECT_LT(MetricPage::Clock::now() - began, milliseconds(3000));
  const auto again = MetricPage::Clock::now();
  static_cast<void>(page.fresh_families());
  EXPECT_LT(MetricPage::Clock::now() - again, milliseconds(500)) << "others do not wait for the same";
}

TEST(MetricPage, WhoEndsIsNotWaitedFor) {
  MetricPage page;
  const std::size_t slot = page.add_slot("q");
  std::jthread ending([&] {
    while (!page.is_asked(slot)) std::this_thread::sleep_for(milliseconds(1));
    page.remove_slot(slot);
  });
  const auto began = MetricPage::Clock::now();
  EXPECT_TRUE(page.fresh_families()->empty());
  EXPECT_LT(MetricPage::Clock::now() - began, milliseconds(800));
}

}  // namespace
}  // namespace usdt::exports
