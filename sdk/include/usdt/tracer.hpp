// SPDX-License-Identifier: BSD-2-Clause
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

#include "usdt/event.hpp"
#include "usdt/link.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"
#include "usdt/stack.hpp"
#include "usdt/stop.hpp"

namespace usdt {
inline namespace v1 {

/// How a trace is made.
struct TraceOptions {
  Backend backend = Backend::automatic;
  Carrier carrier = Carrier::automatic;
  std::uint32_t max_programs = 64;  ///< CarrierOptions::max_programs
  /// Longest text of a string argument, in bytes; longer ones are cut and marked.
  std::uint32_t string_size = 200;
  /// Size of the ring between kernel and consumer; rounded up to a power of two of at least one page.
  std::uint32_t ring_bytes = 32u << 20;
  /// Count only hits of processes that descend from the calling process: a command it started, and its children.
  /// Wants kernel BTF for offsets in task_struct; inside a pid namespace Linux 5.10.
  bool descendants_only = false;
  /// Count only hits of these processes and of their descendants; the plan's scope then is AllProcesses. Orphans they
  /// had before the trace are nobody's.
  std::optional<Processes> family_of = std::nullopt;
  /// Count only hits of processes in these cgroups (v2) and below them: directories, as find_cgroup() gives them, at
  /// most eight. One need not be there yet, and may go and come again: Tracer::find_cgroups(). (Linux 5.7.)
  std::vector<std::filesystem::path> cgroups = {};
  /// Addresses of the kernel's stack to record at each hit; 0: none, at most 127 (sysctl kernel.perf_event_max_stack).
  std::uint32_t kernel_stack_depth = 0;
  /// Frames of the process's stack at each hit; 0: none, at most 127 by frame pointers (the same sysctl), else 512.
  /// Symbolizer::user_stack() names them. In the kernel: of the process that was running.
  std::uint32_t user_stack_depth = 0;
  StackMethod user_stack_method = StackMethod::call_frame_info;
  /// StackMethod::call_frame_info: bytes of the stack to record, from the stack pointer on: a multiple of 4096, up to
  /// 65536. As much again, and 300 bytes, is each event larger; of calls then fewer can be under way at once.
  std::uint32_t user_stack_bytes = 16384;
  /// Where an argument or text is on a page that is not in memory, the program waits for it, as the traced process
  /// would (Linux 6.0; not where stacks are keys of a table). Its owner decides for how long, and detaching waits with
  /// it. By default only where what is traced was picked: processes, or a command.
  std::optional<bool> wait_for_pages = std::nullopt;
  /// No events: hits are only counted, calls where they begin, unless the filter asks what only their end knows.
  bool count_only = false;
  /// Calls that can be under way at once, where their entries must be kept until they end, and spans.
  std::uint32_t max_open_calls = 8192;
  /// Of the hits one in so many is looked at, chosen by chance at each before anything is read and before the filter is
  /// asked; of calls and spans at their beginning (calls that fill a table: at their end). At most kMostSampled.
  /// Event::weight() says what each then stands for, and Tracer::table() has estimates. Not of a trace that only
  /// counts, and asks nothing: it has each hit.
  std::uint32_t sample = 1;
  static constexpr std::uint32_t kMostSampled = 1'000'000;
  /// At most so many events a second, over all processors: what the trace does not take in one second it may in the
  /// next. 0: any number; at most kMostRate. Processors that have events in the same instant may pass it by one each.
  /// Not of tables and traces that only count, which have no events.
  std::uint32_t max_rate = 0;
  static constexpr std::uint32_t kMostRate = 10'000'000;
  /// Calls and spans that take less than Tracer::leave_out_faster() said last are counted (ProbeCounts::faster), and
  /// are no events: of a million of them the few that took longest cost the consumer next to nothing (SlowestEvents).
  /// Not of tables and traces that only count, nor of hits, which have no duration.
  bool slow_only = false;
  /// What hits may cost, as a share of what the traced processes do besides: 0.01 makes a program that only calculates
  /// take at most 1 % longer, in the mean of some seconds. Sites that cost more are detached and attached again, some
  /// windows a second or two, by a thread of the tracer's; Tracer::overhead() tells. What the processes do is their
  /// processor time: of the plan's processes, of families and cgroups. Of a trace of everybody it is that of one
  /// processor, all the time. 0: no limit; at most kMostOverhead. Events then have weights, and Tracer::table() and
  /// ProbeCounts::estimated are estimates. Not of the kernel, calls, returns and spans, nor beside `sample`; sites
  /// cannot be added (Tracer::add()).
  double max_overhead = 0;
  /// Tracer::add(): how many additions may be there at once; at most Tracer::kMostAdditions.
  std::uint32_t max_additions = 4096;
  static constexpr double kLeastOverhead = 0.0001, kMostOverhead = 10;
};

/// What TraceOptions::max_overhead comes to.
struct Overhead {
  double allowed = 0;                     ///< the option
  double caused = 0;                      ///< what hits cost, as a share of what the processes did besides, in the mean
  double looked_at = 1;                   ///< the share of what they did in which hits were looked at; 1: always
  std::uint64_t windows = 1;              ///< how often the sites were attached
  std::chrono::nanoseconds of_hit{};      ///< what one costs, in the mean
  std::chrono::nanoseconds looked_for{};  ///< time in which hits were looked at
  std::chrono::nanoseconds lasted{};      ///< of all
  bool of_processors = true;              ///< it is a share of processor time; else of one processor's, all the time
  bool clocked = true;       ///< how long programs run was measured, too (BPF_ENABLE_STATS); else it is a rule of thumb
  std::string trouble = {};  ///< why the sites could not be attached again, if they could not
};

/// What became of the hits of one probe. hits == delivered + not_sampled + rejected + undecided + held_back + ring_full
/// + faster + calls_full + table_full + unfinished + discarded, always; of a trace that only counts, the hits alone,
/// and those that were left out: of calls whose filter asks what only their end knows, those that have not ended, too.
/// Of one that fills a table `delivered` are those that are in its rows, and `table_full` those for which there was no
/// room. Of spans, `delivered` and what else can become of them is counted at the probe that ends them: there hits ==
/// delivered + ... + unmatched + unpaired; at the one that begins them hits == paired + not_sampled
/// + calls_full + unfinished + unpaired.
struct ProbeCounts {
  std::uint64_t hits = 0;        ///< the program ran for a process that counts
  std::uint64_t delivered = 0;   ///< a callback took the event
  std::uint64_t ring_full = 0;   ///< lost: the consumer was too slow for the ring
  std::uint64_t calls_full = 0;  ///< lost: calls and spans beyond TraceOptions::max_open_calls
  std::uint64_t unfinished = 0;  ///< calls and spans that have not ended: by now, or when the trace did
  /// PlanOptions::where says no to them; and those for which it has no answer, since something could not be read.
  std::uint64_t rejected = 0, undecided = 0;
  /// Of a trace that fills a table: beyond TableQuestion::max_rows.
  std::uint64_t table_full = 0;
  /// Recorded, but not taken: the consumer had stopped taking events (--max-events), or its callback threw.
  std::uint64_t discarded = 0;
  std::uint64_t paired = 0;     ///< beginnings of spans whose end came
  std::uint64_t unmatched = 0;  ///< ends of spans that had not begun
  std::uint64_t unpaired = 0;   ///< of spans: what pairs them could not be read
  /// TraceOptions::sample; hits while sites were attached or detached for max_overhead; at the ends of spans those
  /// whose beginning was not
  std::uint64_t not_sampled = 0;
  std::uint64_t held_back = 0;  ///< TraceOptions::max_rate
  std::uint64_t faster = 0;     ///< TraceOptions::slow_only
  /// With TraceOptions::max_overhead: hits that the filter lets pass, those included that came while nothing was
  /// attached, as far as can be told. In no other number; else 0.
  std::uint64_t estimated = 0;
  /// Link::missed_hits() of this probe, in no other number; nothing where the kernel does not count them, or only those
  /// of several probes together.
  std::optional<std::uint64_t> missed = 0;
};

/// What Tracer::add() added: where it begins in the plan, and how much of it is attached.
struct AddedSites {
  Index<PlannedFile> first_file = {};
  Index<PlannedProbe> first_probe = {};
  Index<PlannedSite> first_site = {};
  std::size_t attached = 0;  ///< sites; the others are among Link::refused()
};

/// A trace with the stock program: attached on start, typed events out. One thread at a time, which owns the loop; for
/// others, and at any time, are wake() and layout(), and but for while add() or let_go() runs, plan() and the const
/// functions of link().
class Tracer {
 public:
  /// Called for each event, in the order in which they were recorded.
  using Callback = std::function<void(const Event&)>;

  /// Loads and attaches; the plan is the tracer's from then on. Errors as LoadedObject::attach(), plus not_supported
  /// for descendants_only and family_of without kernel BTF.
  [[nodiscard]] static Result<Tracer> start(AttachPlan plan, const TraceOptions& options = {});
  /// The same with a plan that the application goes on reading. invalid_argument: null.
  [[nodiscard]] static Result<Tracer> start(std::shared_ptr<const AttachPlan> plan, const TraceOptions& options = {});

  Tracer(Tracer&&) noexcept;
  Tracer& operator=(Tracer&&) noexcept;
  ~Tracer();

  /// Loads and attaches what `more` plans, beside what is traced: into the same ring, under the same ledger. The
  /// tracer's plan becomes a new one, with `more` behind what it had (append_plan()): known indices stay, and so do
  /// events that were kept. `more` may be about other processes than the rest. Meanwhile nothing is taken out of the
  /// ring (some 20 ms). Spans of `more` have both their ends in it: what begins at a site of before does not end at one
  /// of these. Errors as start(); limit (kMostAdditions, kMostEver); not_supported (with TraceOptions::max_overhead);
  /// invalid_argument (a table of other rows: PlanOptions::rows says what they are; a plan of spans beside one of none;
  /// called by a callback of poll(), whose event would be of the old plan). After an error nothing of it is attached;
  /// where it had been for a moment, its hits are in the ledger, and the plan has it.
  [[nodiscard]] Result<AddedSites> add(AttachPlan more);
  /// Additions that are there at once: each has programs and maps of its own, some four descriptors and 0.1 MB of
  /// memory, until its files were let go.
  static constexpr std::size_t kMostAdditions = 4096;
  /// Additions in all: of those whose files were let go the plan and the ledger tell, some kilobytes each.
  static constexpr std::size_t kMostEver = 65536;

  /// Detaches the sites of these files of the plan, for good, and keeps nothing of them open, since nobody runs them
  /// any more (FollowKind::gone): what was added for them makes room for others. Their hits stay in the ledger and in
  /// table(), and events of theirs that are still in the ring come out as before. Takes what detach() does, once for
  /// all of `files`. The tracer's plan becomes a new one, without their PlannedFile::elf. How many sites that were.
  /// Errors: invalid_argument (called by a callback of poll(); a file that the plan does not have), not_supported (with
  /// TraceOptions::max_overhead).
  [[nodiscard]] Result<std::size_t> let_go(const std::vector<Index<PlannedFile>>& files);

  /// Looks for TraceOptions::cgroups again, since one may have been made (anew): hits in it count from then on. True if
  /// one is another one than before.
  bool find_cgroups();

  /// What it traces; valid until add() or let_go().
  [[nodiscard]] const AttachPlan& plan() const noexcept;
  /// The same, to keep.
  [[nodiscard]] const std::shared_ptr<const AttachPlan>& shared_plan() const noexcept;
  /// What is attached.
  [[nodiscard]] const Link& link() const noexcept;
  /// How the records of the sites it was started with are laid out; of those that were added, Event::layout() tells.
  [[nodiscard]] const EventLayout& layout() const noexcept;

  /// Hands over what is in the ring, then waits up to `wait` for more if there was nothing. At most `limit` events
  /// reach `callback`; what the ring holds beyond stays there. Returns how many were handed over; 0 also when a signal
  /// came, or wake(). What `callback` throws comes out of here: its event counts as discarded, and those behind it come
  /// with the next call. Errors: io, invalid_argument (called by its own callback).
  [[nodiscard]] Result<std::size_t> poll(const Callback& callback, std::chrono::milliseconds wait,
                                         std::size_t limit = SIZE_MAX);

  /// poll() for those who keep events, or look at them in another thread: copies, in one block of memory. A copy that
  /// was made counts as delivered.
  [[nodiscard]] Result<std::vector<OwnedEvent>> take(std::chrono::milliseconds wait, std::size_t limit = 4096);

  /// From any thread, or a signal handler: a poll() that waits returns, or the next one that would.
  void wake() const noexcept;

  /// A descriptor for epoll, libuv, asio and their like, the tracer's own: readable as long as `poll(callback, 0ms)`
  /// has something to hand over, and from a wake() to the next poll(), which answers it. Do not read from it or close
  /// it. It is readable also while a hit is being recorded, for a microsecond, when a poll() may hand over nothing yet.
  /// After detach() it still tells of what is in the ring; drain() empties that, and only wake() makes it readable from
  /// then on. From the first call on, the first hit after the ring was emptied wakes the loop, which costs the traced
  /// program a microsecond; a poll() that waits looks by itself while hits are frequent. Errors: limit (descriptors).
  [[nodiscard]] Result<int> fd();

  /// With TraceOptions::slow_only: what a call or span has to take, from now on, to become an event; 0 at first. It may
  /// be called by a callback of poll(). (On 32-bit machines what is beyond 4.2 s is 4.2 s.)
  void leave_out_faster(std::chrono::nanoseconds than) noexcept;

  /// Detaches every site; events already in the ring stay readable.
  void detach() noexcept;
  /// After detach(): hands over the rest of the ring (`callback` null: counts it as discarded).
  void drain(const Callback& callback);
  /// Of each probe of the plan, in the order of AttachPlan::probes (those that add() brought come last), exact once
  /// drained.
  [[nodiscard]] std::vector<ProbeCounts> counts() const;
  /// The rows of PlanOptions::table by now, in the order of their keys; exact after detach(). Errors: invalid_argument
  /// (no table was asked for), io. With TraceOptions::sample counts and sums are estimates: of what was looked at,
  /// times that.
  [[nodiscard]] Result<std::vector<TableRow>> table() const;
  /// Of a table with stacks among its keys: whether there are rows that there were not at the last call. Their stacks
  /// are named best now, while their processes live (Symbolizer::name()).
  [[nodiscard]] bool table_grew() noexcept;
  /// With descendants_only or family_of: hits that are not counted because it could not be told whose descendant the
  /// process is: 64 generations below a process that started before the trace, or on a kernel where forks cannot be
  /// watched.
  [[nodiscard]] std::uint64_t undecided() const noexcept;
  /// TraceOptions::max_overhead so far; nothing: there is no limit. From any thread.
  [[nodiscard]] std::optional<Overhead> overhead() const;
  /// Link::missed() and Link::missed_hits().
  [[nodiscard]] std::optional<std::uint64_t> missed() const;
  /// The same, one for each counter.
  [[nodiscard]] std::vector<MissedHits> missed_hits() const;

 private:
  struct Impl;
  explicit Tracer(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

/// A whole trace in one call on the calling thread: attaches, hands events to `on_event` until `stop` is requested
/// (seen within 100 ms), detaches, drains, and returns the counts per probe of the plan. Errors as Tracer::start().
[[nodiscard]] Result<std::vector<ProbeCounts>> trace(AttachPlan plan, const StopToken& stop,
                                                     const Tracer::Callback& on_event,
                                                     const TraceOptions& options = {});

}  // namespace v1
}  // namespace usdt
