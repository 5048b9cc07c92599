// SPDX-License-Identifier: BSD-2-Clause
// Trace events of uprobes (Documentation/trace/uprobetracer.rst), which perf events can be opened of.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "usdt/result.hpp"

namespace usdt::sys {

/// A trace event of this process's own, at one place of a file. Its definition is removed with it; it holds no
/// breakpoint, perf events that are opened of it do. Events of a process that was killed are removed by the next one
/// that defines some.
///
/// Whoever may write to tracefs may remove a definition that no perf event is opened of yet, and the kernel gives its
/// number to the next one that anybody defines: ask has_id() once a perf event is opened, from when on it stays.
///
/// tracefs would take more places for an event, and must not be given them: of such an event the kernel (to 6.18)
/// removes definitions while its perf events are in use (unregister_trace_uprobe() in kernel/trace/trace_uprobe.c asks
/// only of the last one), and the next hit reads freed memory. Perf events may be in use for a moment after they were
/// closed, in a child that is ending, and for as long as they like where /proc does not show who uses them. Of an event
/// with one place it refuses (EBUSY).
class TraceEvent {
 public:
  /// `path` is a word of a command to the kernel, and no name that others chose: /proc/self/fd/N. `semaphore`: offset
  /// in the file of what counts who looks on; 0: none. Errors: those of tracefs, which CAP_SYS_ADMIN opens wherever it
  /// is mounted or not (Linux 5.2).
  [[nodiscard]] static Result<TraceEvent> define(bool returns, const std::string& path, std::uint64_t offset,
                                                 std::uint64_t semaphore);
  TraceEvent(TraceEvent&& other) noexcept : name_(std::exchange(other.name_, {})) {}
  TraceEvent& operator=(TraceEvent&& other) noexcept;
  ~TraceEvent() { remove(); }

  /// perf_event_attr::config of its perf events.
  [[nodiscard]] Result<std::uint64_t> id() const;
  /// Whether its name has this number still. Nobody else defines that name: what was opened of this number since it was
  /// read was this event.
  [[nodiscard]] bool has_id(std::uint64_t number) const;

 private:
  explicit TraceEvent(std::string name) : name_(std::move(name)) {}
  void remove() noexcept;

  std::string name_;  ///< "GROUP/EVENT"; empty: moved from
};

}  // namespace usdt::sys
