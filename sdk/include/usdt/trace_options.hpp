// SPDX-License-Identifier: BSD-2-Clause
// How a trace is made: TraceOptions, a plain value for Tracer::start() and trace(). Its defaults trace each hit of
// everybody. What contradicts itself, or the plan, is refused at the start.
//     auto tracer = usdt::Tracer::start(plan, {.string_size = 64, .max_rate = 10'000});
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "usdt/backend.hpp"
#include "usdt/broker.hpp"
#include "usdt/carrier.hpp"
#include "usdt/event_ring.hpp"
#include "usdt/plan.hpp"
#include "usdt/stack.hpp"
#include "usdt/stop.hpp"

namespace usdt {
inline namespace v1 {

/// Says how a trace is made.
struct TraceOptions {
  Backend backend = Backend::automatic;
  Carrier carrier = Carrier::automatic;
  std::uint32_t max_programs = 64;  ///< CarrierOptions::max_programs
  /// The longest text of a string argument, in bytes; longer ones are cut and marked.
  std::uint32_t string_size = 200;
  /// The size in bytes of the ring between kernel and consumer; rounded up to a power of two of at least one page.
  std::uint32_t ring_bytes = 32u << 20;
  /// A ring of ring_bytes that was made ahead: the first trace that starts with it takes it. Null, of another size or
  /// taken already: the trace makes one.
  std::shared_ptr<EventRing> ring = nullptr;
  /// Whether only hits of processes count that descend from the calling process: a command it started, and its
  /// children. Needs kernel BTF, for offsets in task_struct; inside a pid namespace also Linux 5.10.
  bool descendants_only = false;
  /// The only child of the calling process whose descendants are meant, together with descendants_only. It waits until
  /// the trace has begun, so that breakpoints can be put into its memory and its descendants' alone, and others pay
  /// nothing (Tracer::others_pay()). 0: the caller may start more.
  pid_t command = 0;
  /// Whether the command does not wait any more. Processes that it has started are found if the calling process is a
  /// child subreaper (PR_SET_CHILD_SUBREAPER), to which orphans come back; otherwise others pay.
  bool command_runs = false;
  /// The process with whose end the trace ends; 0: it does not. What was in flight in it then stays so
  /// (Tracer::in_flight()), as if it were looked at just before; that of others is abandoned when they end.
  pid_t ends_with = 0;
  /// Counts only hits of these processes and of their descendants; the plan's scope then is AllProcesses. A descendant
  /// whose parent had ended before the trace began cannot be told to be one, and does not count.
  std::optional<Processes> family_of = std::nullopt;
  /// Counts only hits of processes in these cgroups (v2) and below them: directories, as find_cgroup() gives them, at
  /// most eight. One need not exist yet, and may go and come again: Tracer::find_cgroups(). (Linux 5.7.)
  std::vector<std::filesystem::path> cgroups = {};
  /// Whether hits of the calling process are left out, where everybody is traced or a family that it belongs to:
  /// writing an event down would otherwise be the next event. A process that was chosen by its number counts.
  bool leave_out_self = false;
  /// Addresses of the kernel's stack to record at each hit; 0: none, at most 127 (sysctl kernel.perf_event_max_stack).
  std::uint32_t kernel_stack_depth = 0;
  /// Frames of the process's stack to record at each hit; 0: none, at most 127 by frame pointers (that sysctl), else
  /// 512. Symbolizer::user_stack() names them. At a hit in the kernel it is the stack of the process that was running
  /// there.
  std::uint32_t user_stack_depth = 0;
  StackMethod user_stack_method = StackMethod::call_frame_info;
  /// StackMethod::call_frame_info: bytes of the stack to record, from the stack pointer on: a multiple of 4096, up to
  /// 65536. Each event is larger by that and 300 bytes, so that the records of fewer unfinished calls fit.
  std::uint32_t user_stack_bytes = 16384;
  /// Whether functions of scripts are recorded with the stack of a process that runs CPython 3.11 to 3.14, PHP 8.2
  /// or 8.4, Ruby 3.1 or 3.3, as many as `user_stack_depth`, at most 128. Each event is larger by 180 bytes, and 40 for
  /// each of them. Not for 32-bit processes, through a broker, and on kernels that do not say where threads have their
  /// thread pointer.
  bool script_frames = true;
  /// Whether the program waits for an argument or text whose page is not in memory, as the traced process would (Linux
  /// 6.0; not where stacks are keys of a table). The owner of the memory decides how long that takes, and detaching
  /// waits as well. By default it waits only if the caller has chosen processes or a command.
  std::optional<bool> wait_for_pages = std::nullopt;
  /// Whether hits are only counted, without events. Calls are counted when they begin, or, where the filter asks what
  /// only their end knows (the return value, the duration), when they end.
  bool count_only = false;
  /// The most calls and spans that are open at once (begun, and not ended), where their beginnings have to be kept. If
  /// more begin, the oldest are given up (ProbeCounts::abandoned). Fewer large records have room: 64 MiB in all. 0:
  /// 131,072, for which the kernel allocates room as they begin; 8,192 before Linux 6.1 and at kernel functions;
  /// through a broker what 4 MiB have room for.
  std::uint32_t max_open_calls = 0;
  /// One hit in so many is looked at, chosen at random before anything is read and before the filter is asked. Calls
  /// and spans are chosen when they begin (calls that fill a table: when they end). At most kMostSampled.
  /// Event::weight() says how many hits each event then stands for, and Tracer::table() has estimates. A trace that
  /// only counts, without a filter, counts each hit nevertheless.
  std::uint32_t sample = 1;
  static constexpr std::uint32_t kMostSampled = 1'000'000;
  /// At most so many events a second, over all processors; what is not used up in one second may be in the next. 0: no
  /// limit; at most kMostRate. Processors that record in one instant may exceed it by one event each. Tables and
  /// traces that only count have no events, and no such limit.
  std::uint32_t max_rate = 0;
  static constexpr std::uint32_t kMostRate = 10'000'000;
  /// Whether calls and spans that take less than Tracer::leave_out_faster() said last are counted (ProbeCounts::faster)
  /// and are no events. To find the few that took longest among millions (SlowestEvents) then costs the consumer next
  /// to nothing. Not for tables and traces that only count, nor for hits, which have no duration.
  bool slow_only = false;
  /// The most that hits may cost, as a share of the processor time that the traced processes use for themselves: 0.01
  /// makes a program that only calculates take at most 1 % longer, on average over some seconds. 0: no limit; else from
  /// kLeastOverhead to kMostOverhead.
  /// - A thread of the tracer detaches sites that cost more, and attaches them again for a window at a time, some
  ///   windows a second or two; Tracer::overhead() tells of them.
  /// - The traced processes are those of the plan, the families and cgroups. Where everybody is traced, the time of one
  ///   processor stands for theirs.
  /// - Events have weights (Event::weight()), and Tracer::table() and ProbeCounts::estimated are estimates.
  /// - It is not for hits in the kernel, calls, returns and spans, nor beside `sample`, and sites cannot be added
  ///   (Tracer::add()).
  double max_overhead = 0;
  /// The most additions that there may be at once (Tracer::add()); at most Tracer::kMostAdditions.
  std::uint32_t max_additions = 4096;
  /// Whether files that were written to since they were scanned are left out: LoadOptions::leave_out_changed.
  bool leave_out_changed = false;
  /// The service that attaches in this process's place; null: itself, which takes privileges. Through it are traced
  /// processes of this user alone, which are named (the plan's scope) or have a file of the plan mapped when the trace
  /// begins, and what a command or `family_of` starts (Link::started()). It has neither kernel functions, kernel
  /// stacks, limits of overhead nor pages that are waited for (not_supported, with the reason).
  std::shared_ptr<Broker> broker = nullptr;
  /// Ends Tracer::start() and Tracer::add() early, from another thread: ErrorKind::stopped. Thousands of files take
  /// seconds. Nothing of what was to be attached stays so.
  StopToken stop = {};
  static constexpr double kLeastOverhead = 0.0001, kMostOverhead = 10;
};

}  // namespace v1
}  // namespace usdt
