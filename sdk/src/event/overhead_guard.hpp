// SPDX-License-Identifier: BSD-2-Clause
// TraceOptions::max_overhead: a thread that detaches the sites of a trace when their hits cost too much, attaches them
// again, and estimates what there was meanwhile. Private to event/.
//
// Sampling in programs does not help who is hit too often: the trap costs most, and it is there with whatever program.
// Only what is not attached costs nothing. To attach and detach takes the kernel some 100 ms, so that this is done for
// windows, of a share of a second or two.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "event/hit_prices.hpp"
#include "event/overhead_budget.hpp"
#include "event/site_counts.hpp"
#include "event/stretches.hpp"
#include "event/traced_time.hpp"
#include "usdt/bpf_object.hpp"
#include "usdt/tracer.hpp"

namespace usdt::event {

/// Holds what is guarded. All of it outlives the guard, but for when finish() was called.
struct GuardedTrace {
  const LoadedObject& object;
  const SiteCounts& counts;
  Link& link;
  std::uint32_t sites = 0;
};

class OverheadGuard {
 public:
  /// The sites are attached. Errors: limit (threads), io.
  [[nodiscard]] static Result<std::unique_ptr<OverheadGuard>> start(const GuardedTrace& trace, HitPrices prices,
                                                                    TracedTime time, double share);
  ~OverheadGuard();
  OverheadGuard(const OverheadGuard&) = delete;
  OverheadGuard& operator=(const OverheadGuard&) = delete;

  /// Nothing is switched any more, and nothing is looked at: the caller detaches.
  void finish() noexcept;

  /// From any thread:
  [[nodiscard]] Overhead account() const;
  /// How many hits there were for each that is an event of that time.
  [[nodiscard]] double weight_at(std::uint64_t timestamp) const;
  /// Returns for each site the hits for which the filter holds, as far as can be told.
  [[nodiscard]] std::vector<double> hits() const;
  /// Returns the table's rows, estimated likewise.
  [[nodiscard]] Result<std::vector<TableRow>> rows() const;

 private:
  /// Holds what was seen so far, at one moment.
  struct Seen {
    std::vector<std::uint64_t> hits;  ///< by site, for which the filter holds
    std::vector<TableRow> rows;       ///< in the order of their keys
  };
  /// From when on events have that weight.
  struct Weight {
    std::uint64_t from = 0;
    double weight = 1;
  };

  OverheadGuard(const GuardedTrace& trace, HitPrices prices, TracedTime time);
  void run();
  void step();
  void detach();
  void attach();
  /// From now on hits are looked at, or not.
  void look_at_hits(bool wanted);
  [[nodiscard]] OverheadReading read();
  /// Books what was done since the last one.
  void advance(const OverheadReading& reading);
  [[nodiscard]] Seen seen_so_far() const;
  void estimate(const Seen& from, const Seen& to, double weight);
  void weigh_events(double weight);

  const GuardedTrace trace_;
  const HitPrices prices_;
  TracedTime time_;
  std::optional<OverheadBudget> budget_;

  mutable std::mutex mutex_;  ///< of what follows; held while the kernel switches
  std::condition_variable changed_;
  bool finished_ = false;
  bool attached_ = true;
  bool was_detached_ = false;
  bool looking_ = true;
  OverheadReading first_, last_reading_;
  double used_ = 0;  ///< TracedTime
  std::uint64_t hits_so_far_ = 0;
  std::chrono::nanoseconds reading_took_{}, not_before_{};
  std::uint64_t windows_ = 1;
  double seen_work_ = 0, seen_cost_ = 0;
  std::chrono::nanoseconds seen_time_{};
  /// Two stretches whose weights may still change, and what was seen before each. All before is in `hits_` and `rows_`.
  Stretch last_, current_;
  Seen before_last_, before_current_;
  std::vector<double> hits_;
  std::map<std::vector<TableKey>, TableRow> rows_;
  double told_ = 0;  ///< work that the weights of events stand for
  std::string trouble_;

  mutable std::mutex weights_mutex_;
  std::deque<Weight> weights_;

  std::thread thread_;
};

}  // namespace usdt::event
