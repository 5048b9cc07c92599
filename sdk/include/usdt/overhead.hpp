// SPDX-License-Identifier: BSD-2-Clause
// The report of what a trace costs the processes that it traces, if that is limited: TraceOptions::max_overhead limits
// it, and Tracer::overhead() makes the report.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace usdt {
inline namespace v1 {

/// Reports what hits cost under TraceOptions::max_overhead.
struct Overhead {
  double allowed = 0;    ///< the option
  double caused = 0;     ///< the mean cost of hits, as a share of the rest of the processes' work
  double looked_at = 1;  ///< the share of that work during which hits were looked at; 1: always
  /// The share of their processor time that the processes had for themselves while hits were looked at: hits took the
  /// rest.
  double own_share = 1;
  std::uint64_t windows = 1;              ///< how often the sites were attached
  std::chrono::nanoseconds of_hit{};      ///< the mean cost of one
  std::chrono::nanoseconds looked_for{};  ///< time in which hits were looked at
  std::chrono::nanoseconds lasted{};      ///< of all
  bool of_processors = true;              ///< it is a share of processor time; else of one processor's, all the time
  bool clocked = true;       ///< how long programs run was measured, too (BPF_ENABLE_STATS); else it is a rule of thumb
  std::string trouble = {};  ///< why the sites could not be attached again, if they could not

  /// Returns by how much of itself an estimate can be too small or too large if the price of a hit is off by
  /// kPriceError; without end where hits took nearly all. Chance comes on top, which is sqrt(hits looked at) of them.
  [[nodiscard]] double estimate_error() const noexcept { return kPriceError * (1 - own_share) / own_share; }
  /// The most that the price of a hit was seen to be off by, on virtual processors that others used as well.
  static constexpr double kPriceError = 1.0 / 3;
};

}  // namespace v1
}  // namespace usdt
