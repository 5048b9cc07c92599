// SPDX-License-Identifier: BSD-2-Clause
// The plan of a tracer for what is asked of its events: it stays in its place. Private to session/.
#pragma once

#include <memory>

#include "usdt/plan.hpp"
#include "usdt/tracer.hpp"

namespace usdt::session {

/// A copy of a tracer's plan, which is replaced by a larger one as files are added. What is made for the copy
/// (EventFilter, EventTable) goes on to be valid, and knows the new sites.
class GrowingPlan {
 public:
  /// `tracer` lives longer.
  explicit GrowingPlan(const Tracer& tracer) : tracer_(tracer), known_(tracer.shared_plan()), plan_(*known_) {}
  GrowingPlan(const GrowingPlan&) = delete;
  GrowingPlan& operator=(const GrowingPlan&) = delete;

  [[nodiscard]] const AttachPlan& plan() const noexcept { return plan_; }
  /// Takes what the tracer's plan has become. To be called before an event is asked.
  void grow() {
    if (known_ == tracer_.shared_plan()) return;
    known_ = tracer_.shared_plan();
    plan_ = *known_;
  }

 private:
  const Tracer& tracer_;
  std::shared_ptr<const AttachPlan> known_;
  AttachPlan plan_;
};

}  // namespace usdt::session
