// SPDX-License-Identifier: BSD-2-Clause
// What of a live trace's condition is asked of its events, since the kernel cannot answer it. Private to session/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "session/growing_plan.hpp"
#include "usdt/account.hpp"
#include "usdt/event_filter.hpp"
#include "usdt/question.hpp"
#include "usdt/tracer.hpp"

namespace usdt::session {

/// Asks events of a tracer, which lives longer. One thread at a time.
class LiveFilter {
 public:
  /// Null: the condition has no such part. Errors: those of EventFilter::make().
  [[nodiscard]] static Result<std::unique_ptr<LiveFilter>> make(const Question& question, const Tracer& tracer);

  /// Whether an event is one of those that are asked for. The others are counted.
  [[nodiscard]] bool passes(const Event& event);
  /// Leaves out an event that comes too late to be shown.
  void discard(const Event& event);
  /// Takes those of a probe that were left out out of what was delivered.
  void account_for(Index<PlannedProbe> probe, Account& account) const;

 private:
  struct LeftOut {
    std::uint64_t rejected = 0, undecided = 0, discarded = 0;
  };

  explicit LiveFilter(const Tracer& tracer) : plan_(tracer) {}
  [[nodiscard]] LeftOut& left_out(const Event& event);

  GrowingPlan plan_;
  std::optional<EventFilter> filter_ = {};  ///< once it is made for the plan
  std::vector<LeftOut> left_out_ = {};
};

}  // namespace usdt::session
