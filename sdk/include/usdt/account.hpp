// SPDX-License-Identifier: BSD-2-Clause
// Accounts of the hits of a trace: an Account for each probe, and all of a trace as a SessionSummary. Each number of an
// account is a row of one table, counts() of counts.hpp. Code that adds or writes accounts goes over that table. Plain
// values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/counts.hpp"
#include "usdt/file_change.hpp"
#include "usdt/link.hpp"
#include "usdt/plan.hpp"
#include "usdt/tracer.hpp"

namespace usdt {
inline namespace v1 {

struct Question;

/// Counts what became of the hits of one probe: hits == delivered + lost() + all that has CountRole::kLeftOut.
struct Account : ProbeCounts {
  /// Returns the hits that have no event although nobody asked for that, calls that were open at the end among them.
  [[nodiscard]] std::uint64_t lost() const noexcept;
  /// Hits that were looked at, or spans: not calls of which the end is not known.
  [[nodiscard]] std::uint64_t sampled(bool spans = false) const noexcept {
    return spans ? paired : hits - not_sampled - calls_full - unfinished - abandoned;
  }
  /// Calls without an end, as far as there was room for them: the rest of those that were abandoned was left by its
  /// thread.
  [[nodiscard]] std::uint64_t without_end() const noexcept { return unfinished + abandoned - given_up; }
  /// Spans that began, whatever became of them.
  [[nodiscard]] std::uint64_t begun() const noexcept { return paired + unfinished + abandoned + calls_full; }
  /// Hits or spans for which the question holds.
  [[nodiscard]] std::uint64_t matched(bool spans = false) const noexcept {
    return sampled(spans) - rejected - undecided;
  }
  /// Adds the numbers of another one.
  void add(const Account& other) noexcept;
  /// Adds what a recording counted when it was made to what its events come to: the hits are those of then, and events
  /// that were not recorded have the reason they had.
  void add_recorded(const ProbeCounts& then) noexcept;
};

/// A number as summaries and ledgers show it.
struct ToldCount {
  std::string_view name;
  CountRole role;
  std::uint64_t value;
};
/// Returns what to show of a number. Nothing: it is a part of another one.
///
/// Calls that will not be seen to end are `unfinished`, since nobody can tell them from those that run on, but for
/// those that were given up for want of room: these are `abandoned`. Spans that have not ended are no loss, but
/// "in_flight".
[[nodiscard]] std::optional<ToldCount> tell_count(const CountInfo& count, const Account& account, bool spans);

/// Returns what the numbers of a question's accounts can come of, as bits of CountCause: a number that comes of none of
/// them is 0, and is not shown.
[[nodiscard]] std::uint16_t count_causes(const Question& question, const AttachPlan& plan);

/// The final account of a trace.
struct SessionSummary {
  std::vector<Account> probes = {};              ///< in the order of AttachPlan::probes
  std::vector<SkippedSite> skipped = {};         ///< by the planner and by the kernel
  std::optional<std::uint64_t> missed = {};      ///< Tracer::missed()
  std::vector<FileChange> changed = {};          ///< Link::changes()
  std::vector<MissedHits> missed_hits = {};      ///< Tracer::missed_hits()
  std::uint64_t undecided = 0;                   ///< Tracer::undecided()
  std::uint64_t shielded = 0;                    ///< Tracer::shielded()
  std::optional<StartedProcesses> started = {};  ///< Link::started()
  std::optional<Overhead> overhead = {};         ///< Tracer::overhead()
  std::string cut =
      {};  ///< how a recording ends before its end, whose hits and losses are not known then; empty: it is whole

  /// The sums over all probes.
  [[nodiscard]] Account total() const;
};

/// Returns the account of a trace so far. Everything that its callbacks took counts as delivered.
[[nodiscard]] SessionSummary summarize(const Tracer& tracer);

/// Returns the sentence "/usr/lib/libx.so was written to: ...". `followed`: what takes its place is traced, too.
[[nodiscard]] std::string change_text(const AttachPlan& plan, const FileChange& change, bool followed);

/// Returns the probe in whose account an event of `probe` is: of a span that of the probe that ends it.
[[nodiscard]] std::uint32_t account_of(const AttachPlan& plan, std::uint32_t probe);
/// Returns numbers of events, which are by probe, in the accounts where they are.
[[nodiscard]] std::vector<std::uint64_t> by_account(const AttachPlan& plan, const std::vector<std::uint64_t>& events);

/// Says in words how numbers of a trace with AskedLimits::max_overhead are estimated, and how far they may be off:
/// "estimated from 12 % of what the processes did".
[[nodiscard]] std::string estimated_text(const Overhead& overhead);
/// Says how many hits there were by such an estimate: "about 4000 hits in all"; "3000 to 6000 hits in all", where what
/// a hit costs makes much of the estimate.
[[nodiscard]] std::string estimated_text(std::uint64_t hits, const Overhead& overhead);

}  // namespace v1
}  // namespace usdt
