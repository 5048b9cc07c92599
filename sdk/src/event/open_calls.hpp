// SPDX-License-Identifier: BSD-2-Clause
// Calls and spans that have begun and not ended: their records, which the stock program keeps in a map until their ends
// come. Private to event/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "event/thread_ends.hpp"
#include "sys/unique_fd.hpp"
#include "usdt/bpf/event.h"
#include "usdt/bpf_object.hpp"
#include "usdt/event.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"
#include "usdt/trace_options.hpp"

namespace usdt::event {

/// Whether a call has a record from its beginning on. Sessions of trampolines leave the time alone.
[[nodiscard]] bool keeps_record(const AttachGroup& group);
/// Whether the plan's calls or spans have records that wait for their ends.
[[nodiscard]] bool keeps_beginnings(const AttachPlan& plan, const TraceOptions& options);
/// How long the threads, processes and programs last that alone can end what they began.
[[nodiscard]] usdt_pair_life life_of_beginnings(const AttachPlan& plan);
/// Whether the plan is of spans that other threads may end.
[[nodiscard]] bool may_end_elsewhere(const AttachPlan& plan);
/// Makes room for them; before the load.
[[nodiscard]] Result<void> size_open_calls(BpfObject& object, const AttachPlan& plan, const EventLayout& layout,
                                           const TraceOptions& options);

class OpenCalls {
 public:
  /// Serves a plan that keeps no beginnings.
  OpenCalls() = default;
  /// Opens the beginnings that an object loaded for `plan` keeps. Errors: io, limit (descriptors).
  [[nodiscard]] static Result<OpenCalls> open(const LoadedObject& object, const AttachPlan& plan,
                                              const EventLayout& layout, const TraceOptions& options);

  /// Whether some could be open.
  [[nodiscard]] bool any() const noexcept { return static_cast<bool>(map_); }
  /// Returns for how many there is room; if more begin, others are given up.
  [[nodiscard]] std::uint32_t room() const noexcept { return room_; }

  using Visit = std::function<void(std::span<const std::byte> record)>;
  struct Visitors {
    std::function<void(const usdt_event& head)> open;
    std::function<void(const usdt_event& head)> left;  ///< cannot end any more
    Visit record = {};                                 ///< of each that is open; may be empty
  };
  /// Takes out what cannot end any more, since its thread has ended or has become another program, and the oldest where
  /// there is little room. Returns whether some were given up, or may have been by the kernel.
  bool look(const ThreadEnds& ends, const Visitors& visitors) const;

 private:
  struct Entry;
  class Copy;
  [[nodiscard]] bool has_left(const Entry& entry, const ThreadEnds& ends) const;
  [[nodiscard]] bool is_unchanged(const Entry& entry) const;
  [[nodiscard]] bool give_up(const Entry& entry) const;

  sys::UniqueFd map_ = {};
  std::uint32_t room_ = 0;
  std::uint32_t key_size_ = 0;
  std::uint32_t value_size_ = 0;
  std::uint32_t record_size_ = 0;
  usdt_pair_life life_ = USDT_PAIR_FOREVER;
  bool spans_ = false;
  bool grows_ = false;  ///< until it is full: then nothing can begin
};

}  // namespace usdt::event
