// SPDX-License-Identifier: BSD-2-Clause
// Events in a recording instead of lines.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "output.hpp"

namespace usdt_trace {

class Recorder : public Output {
 public:
  /// An account now and then, for those who read what is left of a recording that was cut. Due every ten seconds.
  [[nodiscard]] virtual bool account_due() const { return false; }
  virtual void account(const usdt::SessionSummary&) {}
  /// Everything that is not yet on its way to the file, with an account of it.
  virtual void dump(const usdt::SessionSummary&) {}

 protected:
  Recorder(const Flags& flags, usdt::Surroundings& around, usdt::tools::Stream& out);
  void count_unreadable(const usdt::Event& event);

  const Flags& flags_;
};

/// Records all of a trace, or what was last of it (--last).
[[nodiscard]] std::unique_ptr<Recorder> make_recorder(const usdt::Tracer& tracer, const usdt::Printed& printed,
                                                      const Flags& flags, usdt::Surroundings& around,
                                                      usdt::tools::Stream& out);

/// What a recording has of how its maker showed events, for a replay that is not told otherwise.
struct RecordedView {
  usdt::Printed printed = {};
  std::string where = {};
  std::uint32_t kernel_stack_depth = 0, user_stack_depth = 0;
  bool kernel_stack_in_lists = false, user_stack_in_lists = false;
  std::uint32_t sample = 1, max_rate = 0;
  double max_overhead = 0;
  std::optional<std::chrono::nanoseconds> last = {};  ///< it has only the events of the last while
  std::uint64_t began = 0;                            ///< Flags::began
};
/// Errors: malformed.
[[nodiscard]] usdt::Result<RecordedView> recorded_view(const usdt::Recording& recording);

}  // namespace usdt_trace
