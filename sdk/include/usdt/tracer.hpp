// SPDX-License-Identifier: BSD-2-Clause
// A trace with the stock program: Tracer::start() attaches a plan, Tracer::poll() hands typed events to a callback, and
// Tracer::counts() tells what became of every hit. trace() does all three in one call.
//     auto tracer = usdt::Tracer::start(std::move(*plan));
//     tracer->poll([](const usdt::Event& event) { print(event.probe().name, event.pid()); }, 100ms);
//     tracer->detach();
//     tracer->drain(nullptr);                     // from here on counts() are exact
// Threads: one at a time; wake(), layout() and overhead() at any time. Destroying the Tracer detaches every site.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "usdt/counts.hpp"
#include "usdt/event.hpp"
#include "usdt/link.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"
#include "usdt/stack.hpp"
#include "usdt/stop.hpp"

namespace usdt {
namespace event {
struct RingTaker;
}
inline namespace v1 {

/// Makes the ring for a trace's events ahead of the trace. The kernel clears every page of 32 MiB, which takes 6 ms and
/// more of a small trace's start; here a thread of its own does it while the caller looks for probes and plans. Any
/// thread may make and destroy it, in the process that made it; the destructor waits for the kernel.
///     auto ring = std::make_shared<usdt::EventRing>(32u << 20);   // then select, plan, and start with {.ring = ring}
class EventRing {
 public:
  /// Begins to make a ring for TraceOptions::ring_bytes `bytes`. If it cannot be made, Tracer::start() tries again and
  /// says why.
  explicit EventRing(std::uint32_t bytes);
  EventRing(const EventRing&) = delete;
  EventRing& operator=(const EventRing&) = delete;
  ~EventRing();

 private:
  friend struct event::RingTaker;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

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
  /// Whether the program waits for an argument or text whose page is not in memory, as the traced process would (Linux
  /// 6.0; not where stacks are keys of a table). The owner of the memory decides how long that takes, and detaching
  /// waits as well. By default it waits only if the caller has chosen processes or a command.
  std::optional<bool> wait_for_pages = std::nullopt;
  /// Whether hits are only counted, without events. Calls are counted when they begin, or, where the filter asks what
  /// only their end knows (the return value, the duration), when they end.
  bool count_only = false;
  /// The most calls and spans that are open at once (begun, and not ended), where their beginnings have to be kept. If
  /// more begin, the oldest are given up (ProbeCounts::abandoned). Fewer large records have room: 64 MiB in all. 0:
  /// 131,072, for which the kernel allocates room as they begin; 8,192 before Linux 6.1 and at kernel functions.
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
  /// Ends Tracer::start() and Tracer::add() early, from another thread: ErrorKind::stopped. Thousands of files take
  /// seconds. Nothing of what was to be attached stays so.
  StopToken stop = {};
  static constexpr double kLeastOverhead = 0.0001, kMostOverhead = 10;
};

/// Reports what hits cost under TraceOptions::max_overhead.
struct Overhead {
  double allowed = 0;    ///< the option
  double caused = 0;     ///< the mean cost of hits, as a share of the rest of the processes' work
  double looked_at = 1;  ///< the share of that work during which hits were looked at; 1: always
  /// The share of their processor time that the processes had for themselves while hits were looked at: hits took the
  /// rest.
  double own_share = 1;
  std::uint64_t windows = 1;              ///< how often the sites were attached
  std::chrono::nanoseconds of_hit{};      ///< the mean cost of one
  std::chrono::nanoseconds looked_for{};  ///< time in which hits were looked at
  std::chrono::nanoseconds lasted{};      ///< of all
  bool of_processors = true;              ///< it is a share of processor time; else of one processor's, all the time
  bool clocked = true;       ///< how long programs run was measured, too (BPF_ENABLE_STATS); else it is a rule of thumb
  std::string trouble = {};  ///< why the sites could not be attached again, if they could not

  /// Returns by how much of itself an estimate can be too small or too large if the price of a hit is off by
  /// kPriceError; without end where hits took nearly all. Chance comes on top, which is sqrt(hits looked at) of them.
  [[nodiscard]] double estimate_error() const noexcept { return kPriceError * (1 - own_share) / own_share; }
  /// The most that the price of a hit was seen to be off by, on virtual processors that others used as well.
  static constexpr double kPriceError = 1.0 / 3;
};

/// Reports what Tracer::add() added: where it begins in the plan, and how much of it is attached.
struct AddedSites {
  Index<PlannedFile> first_file = {};
  Index<PlannedProbe> first_probe = {};
  Index<PlannedSite> first_site = {};
  std::size_t attached = 0;  ///< sites; the others are among Link::refused()
};

/// Runs a trace with the stock program: start() attaches it, and poll() hands out typed events.
///
/// Threads: one thread at a time calls its functions. Any other may call wake(), layout() and overhead() at any time,
/// and plan() and the const functions of link() while neither add() nor let_go() runs.
class Tracer {
 public:
  /// Takes each event, in the order in which they were recorded.
  using Callback = std::function<void(const Event&)>;

  /// Loads the stock program for `plan` and attaches it. Errors: those of LoadedObject::attach(); not_supported
  /// (descendants_only or family_of without kernel BTF; a question about a text that a call is passed, of which none
  /// can be kept until its end), invalid_argument (a question about such a text that is shown with another length),
  /// limit (of kept texts and other values more than TypedExpression::kMostValues).
  [[nodiscard]] static Result<Tracer> start(AttachPlan plan, const TraceOptions& options = {});
  /// Starts a trace of a plan that the application goes on reading. Errors also: invalid_argument (null).
  [[nodiscard]] static Result<Tracer> start(std::shared_ptr<const AttachPlan> plan, const TraceOptions& options = {});

  Tracer(Tracer&&) noexcept;
  Tracer& operator=(Tracer&&) noexcept;
  ~Tracer();

  /// Loads and attaches what `more` plans beside what is traced already: its events come out of the tracer's ring, and
  /// its hits are in counts().
  ///
  /// The tracer's plan becomes a new one, with `more` behind what it had (append_plan()): indices and events that were
  /// kept stay valid. `more` may be about other processes than the rest. A span begins and ends in one plan, this one
  /// or one before. While this runs (some 20 ms) nothing is taken out of the ring.
  ///
  /// Errors: those of start(); limit (kMostAdditions, kMostEver); not_supported (with TraceOptions::max_overhead);
  /// invalid_argument (a table of other rows: PlanOptions::rows says what they are; a plan of spans beside one without;
  /// called by a callback of poll(), whose event would be of the old plan). After an error nothing of `more` is
  /// attached. If some of it had been for a moment, the plan has it, and its hits are in counts().
  [[nodiscard]] Result<AddedSites> add(AttachPlan more);
  /// The most additions at once: each has programs and maps of its own, some four descriptors and 0.1 MB of memory,
  /// until let_go() detached its files.
  static constexpr std::size_t kMostAdditions = 4096;
  /// The most additions in all: the plan and the ledger keep those whose files were detached, some kilobytes each.
  static constexpr std::size_t kMostEver = 65536;

  /// Detaches the sites of these files of the plan for good, and closes the files: nobody runs them any more
  /// (FollowKind::gone), and other additions get their room. Returns how many sites that were.
  ///
  /// Their hits stay in counts() and table(), and their events that are still in the ring come out as before. The
  /// tracer's plan becomes a new one, in which these files have no PlannedFile::elf. It takes as long as detach(), once
  /// for all of `files`. Errors: invalid_argument (called by a callback of poll(); a file that the plan does not have),
  /// not_supported (with TraceOptions::max_overhead).
  [[nodiscard]] Result<std::size_t> let_go(const std::vector<Index<PlannedFile>>& files);

  /// Looks for TraceOptions::cgroups again. A cgroup that was made meanwhile, or made anew under its name, counts from
  /// then on. Returns whether there was such a one.
  bool find_cgroups();

  /// Returns the plan of all that is traced; the reference is valid until add() or let_go().
  [[nodiscard]] const AttachPlan& plan() const noexcept;
  /// Returns the plan as a share to keep. (The reference to the share is valid until add() or let_go().)
  [[nodiscard]] const std::shared_ptr<const AttachPlan>& shared_plan() const noexcept;
  /// Returns the link of all that is attached.
  [[nodiscard]] const Link& link() const noexcept;
  /// Returns how records of the sites that the trace began with are laid out; Event::layout() tells it of any event.
  [[nodiscard]] const EventLayout& layout() const noexcept;

  /// Hands over what is in the ring, then waits up to `wait` for more if there was nothing. At most `limit` events
  /// reach `callback`; what the ring holds beyond stays there. Returns how many were handed over; 0 also when a signal
  /// came, or wake(). An exception of `callback` comes out of here: its event counts as discarded, and those behind it
  /// come with the next call. Errors: io, invalid_argument (called by its own callback).
  [[nodiscard]] Result<std::size_t> poll(const Callback& callback, std::chrono::milliseconds wait,
                                         std::size_t limit = SIZE_MAX);

  /// Returns copies of the events that poll() would hand over, in one block of memory: for keeping them, or for looking
  /// at them in another thread. A copy that was made counts as delivered. Errors: as poll(); limit (memory).
  [[nodiscard]] Result<std::vector<OwnedEvent>> take(std::chrono::milliseconds wait, std::size_t limit = 4096);

  /// Makes a poll() that waits return, or the next one that would wait. May be called by any thread and by signal
  /// handlers.
  void wake() const noexcept;

  /// Returns a descriptor for epoll, libuv, asio and their like. It belongs to the tracer: do not read from it or close
  /// it.
  ///
  /// It is readable as long as `poll(callback, 0ms)` has something to hand over, and from a wake() to the next poll().
  /// It is also readable for the microsecond in which a hit is being recorded, when poll() may hand over nothing yet.
  /// After detach() it still tells of what is in the ring; once drain() has emptied that, only wake() makes it
  /// readable.
  ///
  /// From the first call of fd() on, the first hit after the ring was emptied wakes the loop, which costs the traced
  /// program a microsecond. (A poll() that waits looks by itself while hits are frequent.) Errors: limit (descriptors).
  [[nodiscard]] Result<int> fd();

  /// Makes events, from now on, only of calls and spans that take at least `than`, under TraceOptions::slow_only; 0 at
  /// first. A callback of poll() may call it. (On 32-bit machines durations beyond 4.2 s count as 4.2 s.)
  void leave_out_faster(std::chrono::nanoseconds than) noexcept;

  /// Detaches every site; events already in the ring stay readable.
  void detach() noexcept;
  /// Hands over the rest of the ring after detach() (`callback` null: counts it as discarded).
  void drain(const Callback& callback);
  /// Returns what became of the hits of each probe, in the order of AttachPlan::probes (probes that add() brought come
  /// last). The numbers are exact after drain().
  [[nodiscard]] std::vector<ProbeCounts> counts() const;
  /// Returns the calls and spans that have begun and not ended by now, the oldest first: events of their beginnings,
  /// whose duration() is for how long they have been open, and which lack what only an end has. Empty where no
  /// beginnings are kept: a trace that only counts them, calls of the kernel by trampolines.
  [[nodiscard]] std::vector<OwnedEvent> in_flight();
  /// Returns the rows of PlanOptions::table by now, in the order of their keys; exact after detach(). Under
  /// TraceOptions::sample, counts and sums are estimates: those of the hits looked at, times `sample`. Errors:
  /// invalid_argument (no table was asked for), io.
  [[nodiscard]] Result<std::vector<TableRow>> table() const;
  /// Takes the rows out of table() whose keys have the stack of a process that has ended. Each process that starts has
  /// rows of its own, since its code is at addresses of its own: this makes room for those to come. The caller keeps
  /// them, best by their names (Symbolizer::name()), by which rows of processes that run the same functions are one.
  /// Errors: those of table(). Under TraceOptions::max_overhead none are taken.
  [[nodiscard]] Result<std::vector<TableRow>> take_rows_of_ended();
  /// Returns whether the table has rows that it did not have at the last call. Stacks among their keys are best named
  /// now, while their processes live (Symbolizer::name()).
  [[nodiscard]] bool table_grew() noexcept;
  /// Returns how many hits do not count because it could not be told whose descendant the process is (descendants_only,
  /// family_of). This happens 64 generations below a process that started before the trace, and on kernels where forks
  /// cannot be watched.
  [[nodiscard]] std::uint64_t undecided() const noexcept;
  /// Returns how many programs a family has executed with which the kernel took the means to see it, setuid ones of
  /// another user and those that their user may not read; 0 unless the family alone has the breakpoints
  /// (descendants_only, family_of). Hits of these processes from then on, and of what they start, are in no count.
  [[nodiscard]] std::uint64_t shielded() const noexcept;
  /// Returns what hits have cost so far under TraceOptions::max_overhead; nothing: there is no limit. May be called by
  /// any thread.
  [[nodiscard]] std::optional<Overhead> overhead() const;
  /// Returns why processes whose hits do not count have the breakpoints, too, each of which costs them some
  /// microsecond; nothing: they have none.
  [[nodiscard]] const std::optional<std::string>& others_pay() const noexcept;
  /// Returns others_pay() before a trace starts, as far as the plan and the options tell. The kernel may refuse more at
  /// the start.
  [[nodiscard]] static std::optional<std::string> would_others_pay(const AttachPlan& plan, const TraceOptions& options);
  /// Returns Link::missed().
  [[nodiscard]] std::optional<std::uint64_t> missed() const;
  /// Returns Link::missed_hits().
  [[nodiscard]] std::vector<MissedHits> missed_hits() const;

 private:
  struct Impl;
  explicit Tracer(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

/// Runs a whole trace in one call on the calling thread: attaches, hands events to `on_event` until `stop` is requested
/// (seen within 100 ms), detaches, drains, and returns the counts per probe of the plan. Errors: as Tracer::start() and
/// Tracer::poll().
///     auto counts = usdt::trace(std::move(*plan), source.get_token(), [](const usdt::Event& event) { ... });
[[nodiscard]] Result<std::vector<ProbeCounts>> trace(AttachPlan plan, const StopToken& stop,
                                                     const Tracer::Callback& on_event,
                                                     const TraceOptions& options = {});

}  // namespace v1
}  // namespace usdt
