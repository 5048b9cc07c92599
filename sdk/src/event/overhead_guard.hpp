// SPDX-License-Identifier: BSD-2-Clause
// TraceOptions::max_overhead: a thread that detaches the sites of a trace when their hits cost too much, attaches them
// again, and estimates what there was meanwhile. Private to event/.
//
// Sampling in programs does not help who is hit too often: the trap costs most, and it is there with whatever program.
// Only what is not attached costs nothing. To attach and detach takes the kernel some 100 ms, so that this is done for
// windows, of a share of a second or two.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "event/event_weights.hpp"
#include "event/hit_estimates.hpp"
#include "event/hit_prices.hpp"
#include "event/overhead_budget.hpp"
#include "event/overhead_meter.hpp"
#include "event/site_counts.hpp"
#include "event/traced_time.hpp"
#include "usdt/bpf_object.hpp"
#include "usdt/link.hpp"
#include "usdt/overhead.hpp"
#include "usdt/table.hpp"

namespace usdt::event {

/// Holds what is guarded. All of it outlives the guard, but for when finish() was called.
struct GuardedTrace {
  const LoadedObject& object;
  const SiteCounts& counts;
  Link& link;
  std::uint32_t sites = 0;
};

/// Holds what the traced processes did while hits were looked at.
struct SeenWork {
  double work = 0;  ///< ns of processors
  double cost = 0;  ///< of hits then; 0 where work is no time of processors
  std::chrono::nanoseconds time{};
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
  [[nodiscard]] double weight_at(std::uint64_t timestamp) const { return weights_.at(timestamp); }
  /// Returns for each site the hits for which the filter holds, as far as can be told.
  [[nodiscard]] std::vector<double> hits() const;
  /// Returns the table's rows, estimated likewise.
  [[nodiscard]] Result<std::vector<TableRow>> rows() const;

 private:
  OverheadGuard(const GuardedTrace& trace, HitPrices prices, TracedTime time, double share);
  void run();
  void step();
  void detach();
  void attach();
  /// From now on hits are looked at, or not.
  void look_at_hits(bool wanted);
  /// Books what was done since the last reading.
  void advance();
  [[nodiscard]] std::vector<std::uint64_t> seen_hits() const;
  [[nodiscard]] SeenHits seen_so_far() const;

  const GuardedTrace trace_;
  EventWeights weights_;

  mutable std::mutex mutex_;  ///< of what follows; held while the kernel switches
  std::condition_variable changed_;
  OverheadMeter meter_;
  OverheadBudget budget_;
  HitEstimates estimates_;
  SeenWork seen_;
  double told_ = 0;  ///< work that the weights of events stand for
  bool finished_ = false;
  bool attached_ = true;
  bool was_detached_ = false;
  bool looking_ = true;
  std::chrono::nanoseconds reading_took_{}, not_before_{};
  std::uint64_t windows_ = 1;
  std::string trouble_;

  std::thread thread_;
};

}  // namespace usdt::event
