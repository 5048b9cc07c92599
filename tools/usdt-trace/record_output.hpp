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

}  // namespace usdt_trace
