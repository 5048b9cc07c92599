// SPDX-License-Identifier: BSD-2-Clause
// Trace events of uprobes (Documentation/trace/uprobetracer.rst), which perf events can be opened of.
#pragma once

#include <cstdint>
#include <string>

#include "sys/unique_fd.hpp"
#include "usdt/result.hpp"

namespace usdt::sys {

/// A trace event of this process's own, at any number of places of files. Its definition is removed with it; it holds
/// no breakpoint, perf events that are opened of it do. What a process that was killed has left is removed by the next
/// one that defines some.
class TraceEvent {
 public:
  /// Errors: those of tracefs, which CAP_SYS_ADMIN opens wherever it is mounted or not (Linux 5.2).
  [[nodiscard]] static Result<TraceEvent> make(bool returns);
  TraceEvent(TraceEvent&& other) noexcept;
  TraceEvent& operator=(TraceEvent&& other) noexcept;
  ~TraceEvent() { remove(); }

  /// One more place, before the event's first perf event is opened; 0, or an errno. `semaphore`: offset in the file of
  /// what counts who looks on; 0: none.
  [[nodiscard]] int add(const std::string& path, std::uint64_t offset, std::uint64_t semaphore);
  /// perf_event_attr::config of its perf events. After the last add().
  [[nodiscard]] Result<std::uint64_t> id();

 private:
  TraceEvent(bool returns, std::string name) : returns_(returns), name_(std::move(name)) {}
  void remove() noexcept;

  bool returns_;
  std::string name_;   ///< "GROUP/EVENT"
  UniqueFd commands_;  ///< of tracefs, while places are added
  bool defined_ = false;
};

}  // namespace usdt::sys
