// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "usdt/event.hpp"
#include "usdt/result.hpp"
#include "usdt/stack.hpp"
#include "usdt/stop.hpp"
#include "usdt/table.hpp"

namespace usdt {
inline namespace v1 {

/// How addresses are named.
struct SymbolizerOptions {
  /// Where separate debug files are (OpenOptions::debug_dirs).
  std::vector<std::filesystem::path> debug_dirs = {"/usr/lib/debug"};
  /// Servers are asked for those that are not there (OpenOptions::debuginfod).
  bool debuginfod = false;
  /// Source lines and inlined calls too, from debug information; else function names alone.
  bool lines = true;
  /// Ends reading early, from another thread; frames then have no names.
  StopToken stop = {};
  /// Ends asking servers alone (OpenOptions::stop_asking).
  StopToken stop_asking = {};
};

/// Names what is on stacks. What processes have mapped is read when one is first seen, and again where an address is in
/// no known mapping; the files stay open, so that stacks resolve after the process has ended and its files are deleted.
/// Remembers the 256 processes seen last. One thread at a time.
class Symbolizer {
 public:
  /// Reads nothing yet.
  explicit Symbolizer(SymbolizerOptions options = {});
  Symbolizer(Symbolizer&&) noexcept;
  Symbolizer& operator=(Symbolizer&&) noexcept;
  ~Symbolizer();

  /// From here on the kernel also tells what processes map (perf_event_open(2)): stacks of those resolve too that end
  /// before anybody could look. To be called before the trace starts. Errors: no_permission (it wants CAP_PERFMON),
  /// not_supported, limit, io; all else works as before.
  [[nodiscard]] Result<void> watch();
  /// Reads what the event's process has mapped, unless that is known: for events that are kept, and named later.
  void see(const Event& event);
  /// The same of a process that is known before its first event.
  void see(pid_t pid);
  /// The stack of the process at the hit (TraceOptions::user_stack_depth). Empty: none was asked for, or the hit was in
  /// a thread of the kernel. Errors: io, the kernel could not tell.
  [[nodiscard]] Result<Stack> user_stack(const Event& event);
  /// Event::kernel_stack() with names.
  [[nodiscard]] Result<Stack> kernel_stack(const Event& event);
  /// Gives names to the stacks among the keys of rows of `plan` (TableStack::names), and makes one row of those whose
  /// stacks then are the same: of several processes, or of several runs of a program. What was named before keeps its
  /// names: to be called while the trace runs, whenever Tracer::table_grew(), since of processes that end nothing more
  /// can be learned but what watch() saw.
  void name(std::vector<TableRow>& rows, const AttachPlan& plan);
  /// What is at one address of a process: a function, after those inlined there. At least one frame, perhaps with an
  /// issue. `return_address`: Frame::return_address.
  [[nodiscard]] std::vector<Frame> frames_at(pid_t pid, ProcessAddr address, bool return_address = false);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace usdt
