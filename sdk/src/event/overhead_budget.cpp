// SPDX-License-Identifier: BSD-2-Clause
#include "event/overhead_budget.hpp"

#include <algorithm>
#include <cmath>

namespace usdt::event {
namespace {

double ns(OverheadBudget::Time time) { return static_cast<double>(time.count()); }

/// Rates of less are chance.
constexpr OverheadBudget::Time kEnough = std::chrono::milliseconds(20);
/// Rates of more are of another time.
constexpr OverheadBudget::Time kMuch = std::chrono::milliseconds(250);
/// Cost that a trace may have before anything is known of it.
constexpr OverheadBudget::Time kBegin = std::chrono::milliseconds(100);

}  // namespace

OverheadBudget::OverheadBudget(double share, const OverheadReading& begin)
    : share_(share), last_(begin), mark_(begin), balance_(share * ns(kBegin)), since_(begin.now) {}

void OverheadBudget::book(const OverheadReading& reading) {
  const double paid = share_ * std::max(reading.work - last_.work, 0.0);
  const double most = std::max({balance_, share_ * ns(kSaved), price()});
  balance_ = std::min(balance_ + paid, most) - std::max(reading.cost - last_.cost, 0.0);
  last_ = reading;
}

void OverheadBudget::look_at_rates(const OverheadReading& reading, Time enough) {
  const Time passed = reading.now - mark_.now;
  if (passed < enough) return;
  const double cost = std::max(reading.cost - mark_.cost, 0.0) / ns(passed);
  work_rate_ = std::max(reading.work - mark_.work, 0.0) / ns(passed);
  busy_rate_ = work_rate_ + cost;
  if (attached_) cost_rate_ = cost;
  if (passed >= kMuch) mark_ = reading;
}

double OverheadBudget::price() const noexcept { return cost_rate_ * ns(window() + detaching_); }

OverheadBudget::Time OverheadBudget::window() const noexcept {
  const double part = cost_rate_ > 0 ? std::min(share_ * busy_rate_ / cost_rate_, 1.0) : 1.0;
  const auto fitting = Time(std::llround(ns(kPeriod) * part));
  return std::clamp(fitting, std::max(kShortest, attaching_), std::max(kLongest, attaching_));
}

bool OverheadBudget::wants_attached(const OverheadReading& reading) {
  book(reading);
  look_at_rates(reading, kEnough);
  const Time passed = reading.now - since_;
  if (attached_) {
    const bool dear = cost_rate_ > share_ * work_rate_;
    return passed < kShortest || !dear || balance_ > cost_rate_ * ns(detaching_);
  }
  const double waits = std::max(ns(passed - kPatience), 0.0) / ns(kPatience);
  return balance_ > 0 && balance_ >= price() * std::exp2(-waits);
}

void OverheadBudget::switched(const OverheadReading& reading, bool attached, Time took) {
  book(reading);
  attached_ = attached;
  (attached ? attaching_ : detaching_) = took;
  since_ = reading.now;
  mark_ = reading;
}

}  // namespace usdt::event
