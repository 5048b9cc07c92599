// SPDX-License-Identifier: BSD-2-Clause
// The parts of a trace: what it began with, and what was added. Private to event/.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "event/load_part.hpp"
#include "event/thread_ends.hpp"
#include "usdt/bpf_object.hpp"
#include "usdt/plan.hpp"

namespace usdt::event {

/// Parts by their first sites. The first one has the ring and whatever else all have in common.
class Parts {
 public:
  explicit Parts(Part first) { all_.push_back(std::move(first)); }

  [[nodiscard]] const Part& first() const noexcept { return all_.front(); }
  /// Returns the object of the first part.
  [[nodiscard]] const LoadedObject& object() const noexcept { return *all_.front().object; }
  /// Returns the part of a site, by its number in the plan of the trace.
  [[nodiscard]] const Part& of_site(std::uint32_t site) const noexcept;
  [[nodiscard]] std::deque<Part>& all() noexcept { return all_; }
  /// Returns how many additions have files that were not let go.
  [[nodiscard]] std::size_t additions() const noexcept { return additions_; }

  /// Adds what was loaded for `plan`, whose files begin at `first_file` in the plan of the trace. Returns it.
  Part& add(Part addition, const AttachPlan& plan, std::uint32_t first_file);
  /// Takes back the last addition.
  void remove_last();
  /// Notes that a file was let go. What its addition has counted is final, if that was its last one.
  void note_let_go(Index<PlannedFile> file);
  /// Takes out what cannot end any more, before the kernel gives up for it what can: where there is little room.
  void make_room();
  /// Names who knows which threads have ended.
  void watch(ThreadEnds watched) noexcept { ends_ = std::move(watched); }
  [[nodiscard]] const ThreadEnds& ends() const noexcept { return ends_; }

 private:
  std::deque<Part> all_;
  std::size_t additions_ = 0;
  ThreadEnds ends_ = {};
  std::chrono::steady_clock::time_point next_look_ = {};
};

}  // namespace usdt::event
