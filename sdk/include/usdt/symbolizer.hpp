// SPDX-License-Identifier: BSD-2-Clause
// Names for stacks: Symbolizer::user_stack() and kernel_stack() name the frames of an event's stacks, see() remembers a
// process while it lives, watch() has the kernel remember those that live for a moment only.
//     usdt::Symbolizer symbolizer;
//     tracer.poll([&](const usdt::Event& event) { auto stack = symbolizer.user_stack(event); ... }, 100ms);
// Threads: one at a time. It keeps files open that processes have mapped.
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

/// Says where a Symbolizer looks for names, and how much it tells.
struct SymbolizerOptions {
  /// Directories with separate debug files (OpenOptions::debug_dirs).
  std::vector<std::filesystem::path> debug_dirs = {"/usr/lib/debug"};
  /// Whether debug files that are not there are fetched from servers (OpenOptions::debuginfod).
  bool debuginfod = false;
  /// Whether frames have source lines and inlined calls, too, which takes debug information; else names alone.
  bool lines = true;
  /// Whether code that OpenJDK compiles is followed from the time on at which a process is met (Symbolizer::see()): by
  /// its probes, to which a trace of its own attaches; of at most eight processes at a time. Else a perf map says what
  /// was there when it was written.
  bool follow_code = false;
  /// Ends reading early, from another thread; the frames that are left then have no names.
  StopToken stop = {};
  /// Ends only the asking of servers, from another thread (OpenOptions::stop_asking).
  StopToken stop_asking = {};
};

/// Turns the addresses on stacks into functions and lines. It reads what a process has mapped when it first meets the
/// process, and again when an address is in no mapping that it knows. The mapped files stay open, so that stacks can be
/// named after the process has ended and its files were deleted. It remembers the 256 processes that it met last. One
/// thread at a time.
class Symbolizer {
 public:
  /// Only takes the options; files are read when they are needed.
  explicit Symbolizer(SymbolizerOptions options = {});
  Symbolizer(Symbolizer&&) noexcept;
  Symbolizer& operator=(Symbolizer&&) noexcept;
  ~Symbolizer();

  /// Has the kernel report from here on what processes map (PERF_RECORD_MMAP2 of perf_event_open(2)), so that stacks of
  /// processes that end before anybody could read /proc can be named, too. Call it before the trace starts. Errors:
  /// no_permission (it takes CAP_PERFMON), not_supported, limit, io; everything else works after an error, too.
  [[nodiscard]] Result<void> watch();
  /// Reads what the event's process has mapped, and the names of functions of a script on its stack, unless they are
  /// known: for events that are kept, to be named later.
  void see(const Event& event);
  /// Reads what process `pid` has mapped, unless it is known: for a process that you know before its first event.
  void see(pid_t pid);
  /// Finds the interpreter of process `pid`, which has just begun and may end right after its first event: that reads
  /// names of scripts at once then. What the process has mapped is not read: more comes.
  void expect(pid_t pid);
  /// Returns the stack of the process at the hit (TraceOptions::user_stack_depth), with names. Empty: none was asked
  /// for, or the hit was in a thread of the kernel. Errors: io (the kernel could not record it).
  [[nodiscard]] Result<Stack> user_stack(const Event& event);
  /// Returns Event::kernel_stack() with names; empty and errors as there.
  [[nodiscard]] Result<Stack> kernel_stack(const Event& event);
  /// Gives names to the stacks that are keys of `rows` (TableStack::names); `plan` is the one that the rows are of.
  /// Rows whose keys then are equal, of several processes or several runs of a program, become one. A stack that was
  /// named keeps its names. Call it while the trace runs, whenever Tracer::table_grew(): of a process that has ended
  /// nothing can be learned any more but what watch() saw.
  void name(std::vector<TableRow>& rows, const AttachPlan& plan);
  /// Names the functions at one address of a process: first the functions that were inlined there, innermost first,
  /// then the function that has their code. There is at least one frame; one without a name says why (Frame::issue).
  /// `return_address`: the address is one that a call returns to (Frame::return_address).
  [[nodiscard]] std::vector<Frame> frames_at(pid_t pid, ProcessAddr address, bool return_address = false);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace usdt
