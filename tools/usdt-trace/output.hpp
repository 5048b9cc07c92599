// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "flags.hpp"
#include "usdt/usdt.hpp"

namespace usdt_trace {

/// The final account of a trace.
struct Summary {
  std::vector<usdt::ProbeCounts> probes;   ///< parallel to AttachPlan::probes
  std::vector<usdt::SkippedSite> skipped;  ///< by the planner and by the kernel
  std::optional<std::uint64_t> missed;     ///< Tracer::missed()
  std::vector<usdt::FileChange> changed;   ///< Link::changes()

  [[nodiscard]] usdt::ProbeCounts total() const;
};

/// Turns events into lines of standard output.
class Output {
 public:
  virtual ~Output() = default;
  virtual void event(const usdt::Event& event) = 0;
  virtual void summary(const Summary& summary) = 0;
  /// Hands what is buffered to the kernel; false once nobody reads it any more.
  [[nodiscard]] virtual bool flush() = 0;
  /// Values asked for that were typed errors so far.
  [[nodiscard]] std::uint64_t unreadable() const noexcept { return unreadable_; }

 protected:
  std::uint64_t unreadable_ = 0;
};

/// "usdt:PATH:PROVIDER:NAME": what usdt-list prints, too.
[[nodiscard]] std::string full_name(const usdt::AttachPlan& plan, const usdt::PlannedProbe& probe);

/// True where calls are traced from entry to return: only they can be unfinished.
[[nodiscard]] bool has_calls(const usdt::AttachPlan& plan);

/// What each item of a print list means at each site.
class Columns {
 public:
  Columns(const usdt::AttachPlan& plan, const PrintList& print);
  /// Number of an argument of the event's site; nothing: it has no such argument.
  [[nodiscard]] std::optional<std::size_t> position(const usdt::Event& event, std::size_t item) const {
    return positions_[event.site().args][item];
  }

 private:
  std::vector<std::vector<std::optional<std::size_t>>> positions_;  ///< by AttachPlan::args, by item
};

[[nodiscard]] std::unique_ptr<Output> text_output(const usdt::AttachPlan& plan, const Flags& flags);
[[nodiscard]] std::unique_ptr<Output> json_output(const usdt::AttachPlan& plan, const Flags& flags);

/// Writes all of `data` to standard output; false on EPIPE or another error.
[[nodiscard]] bool write_out(std::string_view data);

}  // namespace usdt_trace
