// SPDX-License-Identifier: BSD-2-Clause
// How much the traced processes did, as the kernel accounts for it. Private to event/.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <vector>

#include "usdt/plan.hpp"
#include "usdt/trace_options.hpp"

namespace usdt::event {

/// The processor time of those whose hits count: of processes by their clocks, of families by those of all members that
/// were seen and what these say of children that have ended, of cgroups by cpu.stat. Of a trace of everybody that says
/// nothing about who is hit: there it is the time that passes, as if one processor were all there is.
class TracedTime {
 public:
  TracedTime(const AttachPlan& plan, const TraceOptions& options);

  /// Nanoseconds, which only grow.
  [[nodiscard]] double read();
  /// Returns whether times are of processors; else they are of the clock on the wall.
  [[nodiscard]] bool is_of_processors() const noexcept { return kind_ != Kind::everybody; }

 private:
  enum class Kind { processes, family, cgroups, everybody };
  using Clock = std::chrono::steady_clock;
  struct Member {
    double used = 0;    ///< its own
    double reaped = 0;  ///< of children that have ended
  };

  void find_members();
  [[nodiscard]] double sum();

  Kind kind_ = Kind::everybody;
  std::vector<pid_t> roots_;
  bool roots_count_ = true;
  std::map<pid_t, Member> members_;
  std::vector<std::filesystem::path> cgroups_;
  Clock::time_point next_look_{};
  double last_ = 0;
  double gone_ = 0;  ///< of those that ended, and nobody has their time
};

}  // namespace usdt::event
