// SPDX-License-Identifier: BSD-2-Clause
// A trace with the stock program: Tracer::start() attaches a plan, Tracer::poll() hands typed events to a callback, and
// Tracer::counts() tells what became of every hit. trace() does all three in one call.
//     auto tracer = usdt::Tracer::start(std::move(*plan));
//     tracer->poll([](const usdt::Event& event) { print(event.probe().name, event.pid()); }, 100ms);
//     tracer->detach();
//     tracer->drain(nullptr);                     // from here on counts() are exact
// Threads: one at a time; wake(), layout() and overhead() at any time. Destroying the Tracer detaches every site.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "usdt/counts.hpp"
#include "usdt/event.hpp"
#include "usdt/link.hpp"
#include "usdt/overhead.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"
#include "usdt/stop.hpp"
#include "usdt/table.hpp"
#include "usdt/trace_options.hpp"

namespace usdt {
inline namespace v1 {

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
  /// came, or wake(), and often while TraceOptions::command begins. An exception of `callback` comes out of here: its
  /// event is discarded, those behind it come with the next call. Errors: io, invalid_argument (by its own callback).
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
  /// Returns which interpreters processes were found to run since the last call of which no functions of scripts are
  /// recorded, and why: a sentence for each version (TraceOptions::script_frames).
  [[nodiscard]] std::vector<std::string> take_unknown_interpreters();
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
