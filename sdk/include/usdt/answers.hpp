// SPDX-License-Identifier: BSD-2-Clause
// Who takes the answers to a question: an AnswerConsumer, which a live trace and the replay of a recording feed alike.
// It is told first what events are of (trace()), then takes events, or looks at tables, heat maps and the slowest, and
// at the end the account of all hits (summary()). All calls come from one thread, and what they refer to lives until
// they return.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "usdt/account.hpp"
#include "usdt/event.hpp"
#include "usdt/follow.hpp"
#include "usdt/plan.hpp"
#include "usdt/question_plan.hpp"
#include "usdt/slowest.hpp"
#include "usdt/tracer.hpp"
#include "usdt/view.hpp"

namespace usdt {
inline namespace v1 {

/// The rows of a table at one look, folded and in order.
struct ArrangedTable {
  const PlannedTable& table;
  const std::vector<ArrangedRow>& rows;     ///< arrange_rows(); View::top is not applied
  const std::optional<Overhead>& overhead;  ///< how they are estimated
  bool last = true;                         ///< there will be no further look
};

/// Takes answers. Calls that a consumer has no use for do nothing.
class AnswerConsumer {
 public:
  AnswerConsumer() = default;
  AnswerConsumer(const AnswerConsumer&) = delete;
  AnswerConsumer& operator=(const AnswerConsumer&) = delete;
  virtual ~AnswerConsumer() = default;

  /// Events are of `plan` from now on, which outlives the consumer: the first one, or what it has grown to. The plan of
  /// a recording is whole from the beginning; its first `probes` are traced by now.
  virtual void trace(const AttachPlan& plan, std::size_t probes) = 0;
  /// So many of a recording's probes are traced by now.
  virtual void know(std::size_t /*probes*/) {}
  /// An event.
  virtual void event(const Event& event) = 0;
  /// A file that came while the trace runs, and what became of it.
  virtual void followed(const Followed& /*followed*/) {}
  /// The rows of View::question so far, or in the end.
  virtual void table(const ArrangedTable& /*table*/) {}
  /// With View::heat_map, in place of that: what came since the slice before. `last`: there will be no further one.
  virtual void heat(const HeatSlice& /*slice*/, bool /*last*/) {}
  /// With View::slowest, in place of events: those that took longest so far, or in the end (`last`).
  virtual void slowest(const SlowestEvents& /*events*/, bool /*last*/) {}
  /// Something that people are told.
  virtual void notice(const SessionNotice& /*notice*/) {}
  /// The account of all hits, at the end.
  virtual void summary(const SessionSummary& /*summary*/) {}

  /// Events that did not get to where they were to be written, by probe of the plan: they count as lost. Empty: none.
  [[nodiscard]] virtual std::vector<std::uint64_t> not_written() const { return {}; }
  /// Events that were taken and that nobody wants any more, by probe of the plan: they count as discarded. Empty: none.
  [[nodiscard]] virtual std::vector<std::uint64_t> forgotten() { return {}; }
  /// Values that were asked for and could not be read so far.
  [[nodiscard]] virtual std::uint64_t unreadable() const { return 0; }
};

}  // namespace v1
}  // namespace usdt
