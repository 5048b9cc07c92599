// SPDX-License-Identifier: BSD-2-Clause
// What views show of an event that is not in it. Live it is asked of the running system, of a recording it was asked
// then: views do not know where their events come from.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "flags.hpp"
#include "usdt/usdt.hpp"

namespace usdt_trace {

class Surroundings {
 public:
  Surroundings() = default;
  Surroundings(const Surroundings&) = delete;
  Surroundings& operator=(const Surroundings&) = delete;
  virtual ~Surroundings() = default;

  /// What follows is asked about `event`, by several views perhaps, until the next one.
  virtual void begin(const usdt::Event& event) = 0;
  /// How much the time of day is ahead of CLOCK_MONOTONIC at the event, ns.
  [[nodiscard]] virtual std::int64_t wall_offset() = 0;
  [[nodiscard]] virtual const usdt::Result<usdt::Stack>& kernel_stack() = 0;
  [[nodiscard]] virtual const usdt::Result<usdt::Stack>& user_stack() = 0;
};

/// Of a trace.
class LiveSurroundings final : public Surroundings {
 public:
  explicit LiveSurroundings(const Flags& flags);
  void begin(const usdt::Event& event) override;
  std::int64_t wall_offset() override { return offset_; }
  const usdt::Result<usdt::Stack>& kernel_stack() override;
  const usdt::Result<usdt::Stack>& user_stack() override;
  /// Gives names to the stacks among the keys of rows.
  void name(std::vector<usdt::TableRow>& rows, const usdt::AttachPlan& plan) { symbolizer_.name(rows, plan); }

 private:
  const usdt::Event* event_ = nullptr;
  std::int64_t offset_ = 0;        ///< of CLOCK_REALTIME, which may be set while the trace runs
  std::uint64_t asked_until_ = 0;  ///< monotonic; later events ask again
  std::optional<usdt::Result<usdt::Stack>> kernel_, user_;
  usdt::Symbolizer symbolizer_;
};

/// Of a recording, for the event it gave last.
class RecordedSurroundings final : public Surroundings {
 public:
  explicit RecordedSurroundings(const usdt::Recording& recording) : recording_(recording) {}
  void begin(const usdt::Event& event) override;
  std::int64_t wall_offset() override { return recording_.wall_offset(); }
  const usdt::Result<usdt::Stack>& kernel_stack() override;
  const usdt::Result<usdt::Stack>& user_stack() override;

 private:
  const usdt::Recording& recording_;
  std::optional<usdt::Result<usdt::Stack>> kernel_, user_;
};

}  // namespace usdt_trace
