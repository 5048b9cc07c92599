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
  void begin(const usdt::Event& event) {
    kept_ = nullptr;
    look_at(event);
  }
  /// The same of one that was kept with what there was to know; until that goes.
  void begin(const usdt::KeptEvent& event) { kept_ = &event; }
  /// How much the time of day is ahead of event_clock() at the event, ns.
  [[nodiscard]] std::int64_t wall_offset() { return kept_ ? kept_->wall_offset : find_wall_offset(); }
  [[nodiscard]] const usdt::Result<usdt::Stack>& kernel_stack() {
    return kept_ ? kept_stack(kept_->kernel_stack) : find_kernel_stack();
  }
  [[nodiscard]] const usdt::Result<usdt::Stack>& user_stack() {
    return kept_ ? kept_stack(kept_->user_stack) : find_user_stack();
  }
  /// The stacks that are wanted with `event`, the one at hand.
  [[nodiscard]] usdt::EventStacks stacks(const Flags& flags, const usdt::Event& event);

 private:
  static const usdt::Result<usdt::Stack>& kept_stack(const std::optional<usdt::Result<usdt::Stack>>& stack);
  virtual void look_at(const usdt::Event& event) = 0;
  [[nodiscard]] virtual std::int64_t find_wall_offset() = 0;
  [[nodiscard]] virtual const usdt::Result<usdt::Stack>& find_kernel_stack() = 0;
  [[nodiscard]] virtual const usdt::Result<usdt::Stack>& find_user_stack() = 0;

  const usdt::KeptEvent* kept_ = nullptr;
};

/// Of a trace.
class LiveSurroundings final : public Surroundings {
 public:
  /// `over`: servers are not waited for any more.
  explicit LiveSurroundings(const Flags& flags, usdt::StopToken over = {});
  /// Gives names to the stacks among the keys of rows.
  void name(std::vector<usdt::TableRow>& rows, const usdt::AttachPlan& plan) { symbolizer_.name(rows, plan); }

 private:
  void look_at(const usdt::Event& event) override;
  std::int64_t find_wall_offset() override { return offset_; }
  const usdt::Result<usdt::Stack>& find_kernel_stack() override;
  const usdt::Result<usdt::Stack>& find_user_stack() override;

  const usdt::Event* event_ = nullptr;
  usdt::WallClock wall_clock_;
  std::int64_t offset_ = 0;  ///< of the event
  std::optional<usdt::Result<usdt::Stack>> kernel_, user_;
  usdt::Symbolizer symbolizer_;
};

/// Of a recording, for the event it gave last.
class RecordedSurroundings final : public Surroundings {
 public:
  explicit RecordedSurroundings(const usdt::Recording& recording) : recording_(recording) {}

 private:
  void look_at(const usdt::Event& event) override;
  std::int64_t find_wall_offset() override { return recording_.wall_offset(); }
  const usdt::Result<usdt::Stack>& find_kernel_stack() override;
  const usdt::Result<usdt::Stack>& find_user_stack() override;

  const usdt::Recording& recording_;
  std::optional<usdt::Result<usdt::Stack>> kernel_, user_;
};

}  // namespace usdt_trace
