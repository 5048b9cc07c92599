// SPDX-License-Identifier: BSD-2-Clause
// When sites are attached and when not, so that their hits cost no more than a share of what the traced processes do.
// Pure arithmetic: what time it is, what was done and what it cost, it is told.
#pragma once

#include <chrono>
#include <optional>

namespace usdt::event {

/// A trace so far. Numbers only grow.
struct OverheadReading {
  std::chrono::nanoseconds now{};
  double work = 0;  ///< what the traced processes did, ns of processors, without what hits cost them
  double cost = 0;  ///< what the hits cost, ns
};

/// An account: a share of the work is paid in, and each hit takes out its cost. Sites are attached for a window at a
/// time, detached when the account will be empty once that is done, and attached again when it has what the next window
/// will cost. What was overdrawn is paid back first, so that the mean is kept whatever a window really cost.
///
/// Windows are as long as two seconds have one of, but no shorter than kShortest, and than attaching takes. Who stays
/// within the share is never detached.
class OverheadBudget {
 public:
  using Time = std::chrono::nanoseconds;

  static constexpr Time kPeriod = std::chrono::seconds(2);
  static constexpr Time kShortest = std::chrono::milliseconds(50);
  static constexpr Time kLongest = std::chrono::milliseconds(500);
  /// Work whose share may be saved up, by who costs less than it.
  static constexpr Time kSaved = std::chrono::seconds(1);
  /// A trace of processes that do hardly anything any more gets a window after this long, since it may cost less than
  /// the last one did.
  static constexpr Time kPatience = std::chrono::seconds(10);

  /// `share` of the work: 0.05 is 5 %. The sites are attached now.
  OverheadBudget(double share, const OverheadReading& begin);

  /// Whether the sites shall be attached from now on.
  [[nodiscard]] bool wants_attached(const OverheadReading& reading);
  /// They were detached, or attached again, which took so long.
  void switched(const OverheadReading& reading, bool attached, Time took);

  /// How long a window is meant to be.
  [[nodiscard]] Time window() const noexcept;
  [[nodiscard]] double share() const noexcept { return share_; }

 private:
  void book(const OverheadReading& reading);
  void look_at_rates(const OverheadReading& reading, Time enough);
  /// Returns what the hits of a window will cost, and those until its sites are detached.
  [[nodiscard]] double price() const noexcept;

  double share_;
  OverheadReading last_;  ///< booked
  OverheadReading mark_;  ///< from where rates are counted
  double balance_ = 0;    ///< ns
  double cost_rate_ = 0;  ///< while attached, ns in a ns
  double work_rate_ = 1;  ///< of work, likewise
  double busy_rate_ = 1;  ///< and of both, which is about what there is of work without hits
  bool attached_ = true;
  Time since_{};  ///< of the last switch
  Time detaching_ = std::chrono::milliseconds(50);
  Time attaching_ = std::chrono::milliseconds(20);
};

}  // namespace usdt::event
