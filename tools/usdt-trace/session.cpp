// SPDX-License-Identifier: BSD-2-Clause
#include "session.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "attached.hpp"
#include "child.hpp"
#include "common/report.hpp"
#include "common/stream.hpp"
#include "ending.hpp"
#include "following.hpp"
#include "ledger.hpp"
#include "notice.hpp"
#include "output.hpp"
#include "planning.hpp"
#include "process_watch.hpp"
#include "record_output.hpp"
#include "signals.hpp"
#include "sink.hpp"

namespace usdt_trace {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::string_view tool = "usdt-trace";

/// Something came: wakes who waits for it, the tracer's loop or wait().
class Arrival {
 public:
  void wakes(const usdt::Tracer* tracer) { tracer_ = tracer; }
  void wake() {
    {
      const std::lock_guard lock(mutex_);
      came_ = true;
    }
    changed_.notify_one();
    if (const usdt::Tracer* tracer = tracer_) tracer->wake();
  }
  /// For a moment at most: whoever waits has other things to look at.
  void wait() {
    constexpr std::chrono::milliseconds moment{50};
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, moment, [this] { return came_; });
    came_ = false;
  }

 private:
  std::atomic<const usdt::Tracer*> tracer_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool came_ = false;
};

class Session {
 public:
  explicit Session(const Flags& flags) : flags_(flags) {}

  usdt::Result<int> run() {
    started_ = Clock::now();
    usdt::tools::set_patience([this](std::chrono::milliseconds) { return patient(); });
    if (auto opened = open_output(); !opened) return usdt::fail(opened.error());
    // Before anything else is known of them: whatever the processes do from now on is seen.
    watch_.emplace(flags_.pids);
    if (auto opened = following_.open(); !opened) return usdt::fail(opened.error());
    if (auto held = hold_command(); !held) return usdt::fail(held.error());
    auto subjects = find_subjects();
    if (!subjects) return usdt::fail(subjects.error());
    subjects_ = std::move(*subjects);
    if (auto found = find_cgroups(); !found) return usdt::fail(found.error());
    if (over()) return nothing_came();
    if (auto planned = plan(); !planned) return usdt::fail(planned.error());
    if (plan_->sites.empty()) return nothing_came();
    if (auto attached = attach(); !attached) return usdt::fail(attached.error());
    if (auto begun = begin_following(plan_.get()); !begun) return usdt::fail(begun.error());
    if (auto released = release_command(); !released) return usdt::fail(released.error());
    end_ = deadline();
    auto traced = trace();
    finish();
    if (!traced) return usdt::fail(traced.error());
    return exit_code();
  }

 private:
  /// What is recorded is shown only where that is asked for.
  usdt::Result<void> open_output() {
    if (flags_.record.empty() || !flags_.output.empty()) {
      auto shown = Sink::open(flags_.output);
      if (!shown) return usdt::fail(shown.error());
      sinks_.push_back(std::move(*shown));
    }
    if (flags_.record.empty()) return {};
    auto recorded = Sink::open(flags_.record);
    if (!recorded) return usdt::fail(recorded.error());
    sinks_.push_back(std::move(*recorded));
    return {};
  }

  void begin_output() {
    around_.emplace(flags_);
    if (!flags_.record.empty()) {
      auto recorder = make_recorder(*tracer_, printed_, flags_, *around_, sinks_.back().stream());
      recorder_ = recorder.get();
      sinks_.back().show_by(std::move(recorder));
    }
    if (flags_.record.empty() || !flags_.output.empty())
      sinks_.front().show_by(line_output(*plan_, printed_, flags_, *around_, sinks_.front().stream()));
  }

  /// To people, and to those who read the recording.
  void tell(const std::string& text) {
    notice(flags_, text);
    if (recorder_ != nullptr) recorder_->notice(text);
  }

  /// Nobody waits for this trace to go on: its time is over, or a signal came.
  [[nodiscard]] bool over() const { return end_asked_for() || dump_asked_ || Clock::now() >= end_; }

  /// Whether to wait for a reader who takes nothing. While the trace shall go on, of course; then a second, in which
  /// one who is only slow takes what there is.
  [[nodiscard]] bool patient() {
    constexpr std::chrono::seconds grace{1};
    if (!over()) return true;
    if (!last_patience_) last_patience_ = Clock::now() + grace;
    return Clock::now() < *last_patience_;
  }

  usdt::Result<void> hold_command() {
    if (flags_.command.empty()) return {};
    auto program = usdt::find_program(flags_.command[0]);
    if (!program) return usdt::fail(program.error());
    program_ = *program;
    auto child = Child::fork(flags_.command);
    if (!child) return usdt::fail(child.error());
    child_.emplace(std::move(*child));
    return {};
  }

  /// A process that has ended is no reason not to trace the others.
  usdt::Result<Subjects> find_subjects() {
    Subjects subjects{.pids = watch_->living(), .program = program_};
    if (subjects.pids.empty() && !flags_.pids.empty())
      return usdt::fail(usdt::ErrorKind::not_found, fmt::format("no process {}", fmt::join(flags_.pids, ", ")));
    for (const pid_t pid : flags_.pids) {
      if (std::ranges::find(subjects.pids, pid) == subjects.pids.end())
        usdt::tools::print_notice(tool, fmt::format("no process {}: only the others are traced", pid));
    }
    return subjects;
  }

  /// Of --cgroup and --container; with --wait when there are such.
  usdt::Result<void> find_cgroups() {
    bool told = false;
    const auto find = [&](const std::string& name, auto&& by) -> usdt::Result<void> {
      while (true) {
        auto found = by(name);
        if (found) {
          subjects_.cgroups.push_back(std::move(*found));
          return {};
        }
        if (!flags_.wait || found.error().kind != usdt::ErrorKind::not_found) return usdt::fail(found.error());
        if (!std::exchange(told, true)) {
          notice(flags_, fmt::format("waiting: {}", found.error().message));
          catch_signals();
          end_ = deadline();
        }
        if (over()) return {};
        came_.wait();
      }
    };
    for (const std::string& name : flags_.cgroups)
      if (auto found = find(name, usdt::find_cgroup); !found) return found;
    for (const std::string& id : flags_.containers)
      if (auto found = find(id, usdt::find_container); !found) return found;
    return {};
  }

  /// With --wait an empty plan where the trace was to end before there was anything.
  usdt::Result<void> plan() {
    auto planned = plan_trace(flags_, subjects_);
    if (!planned && flags_.wait && planned.error().kind == usdt::ErrorKind::not_found)
      planned = wait_for_something(planned.error());
    if (!planned) return usdt::fail(planned.error());
    plan_ = std::make_shared<usdt::AttachPlan>(std::move(planned->plan));
    printed_ = std::move(planned->printed);
    return {};
  }

  /// The plan of the first thing that comes and has what is to be traced.
  usdt::Result<PlannedTrace> wait_for_something(const usdt::Error& nothing_yet) {
    notice(flags_, fmt::format("waiting: {}", nothing_yet.message));
    catch_signals();
    end_ = deadline();
    if (auto begun = begin_following(nullptr); !begun) return usdt::fail(begun.error());
    if (auto released = release_command(); !released) return usdt::fail(released.error());
    while (!over() && !target_ended()) {
      for (usdt::FollowEvent& event : following_.take()) {
        if (first_) {
          rest_.push_back(std::move(event));
          continue;
        }
        auto planned = plan_more(flags_, subjects_, event.file);
        if (!planned) {
          tell(refused(event, planned.error()));
          following_.done(event);
          continue;
        }
        first_ = std::move(event);
        first_plan_ = std::move(*planned);
      }
      if (first_) return std::move(*first_plan_);
      came_.wait();
    }
    return PlannedTrace();
  }

  /// The exit code of a trace that waited, and had nothing to trace.
  usdt::Result<int> nothing_came() {
    notice(flags_, "nothing came that matches");
    own_code_ = child_ ? child_->ended() : std::nullopt;
    return end_asked_for() ? success : own_code_.value_or(success);
  }

  usdt::Result<void> begin_following(const usdt::AttachPlan* plan) {
    const auto command = child_ ? std::optional(child_->pid()) : std::nullopt;
    auto begun = following_.begin(subjects_, command, plan, [this] { came_.wake(); });
    if (begun && flags_.verbose && following_.begun())
      notice(flags_, fmt::format("following by {}", following_.source()));
    return begun;
  }

  usdt::Result<void> release_command() {
    if (!child_ || std::exchange(released_, true)) return {};
    auto released = child_->release();
    return released ? released : usdt::fail(released.error().within(flags_.command[0]));
  }

  usdt::Result<void> attach() {
    usdt::TraceOptions options;
    options.backend = flags_.backend;
    options.carrier = flags_.carrier;
    options.max_programs = flags_.max_programs;
    options.string_size = flags_.string_size;
    options.ring_bytes = flags_.ring_megabytes << 20;
    options.kernel_stack_depth = flags_.kernel_stack_depth;
    options.user_stack_depth = flags_.user_stack_depth;
    options.user_stack_method = flags_.user_stack_method;
    options.user_stack_bytes = flags_.user_stack_kilobytes << 10;
    options.count_only = flags_.count_only;
    options.wait_for_pages = flags_.wait_for_pages;
    options.descendants_only = child_ && flags_.follow;
    options.cgroups = subjects_.cgroups;
    if (child_ && !flags_.follow) plan_->scope = *usdt::OneProcess::of(child_->pid());
    if (flags_.children) {
      auto family = usdt::Processes::of(subjects_.pids);
      if (!family) return usdt::fail(family.error());
      options.family_of = std::move(*family);
    }
    if (flags_.dump_on) {
      auto filter = usdt::EventFilter::make(flags_.dump_on, *plan_);
      if (!filter) return usdt::fail(filter.error().within("--dump-on"));
      dump_on_.emplace(std::move(*filter));
    }
    catch_signals();
    if (flags_.dump_on_signal) catch_dump_signal();
    auto tracer = usdt::Tracer::start(plan_, options);
    if (!tracer && options.descendants_only && tracer.error().kind == usdt::ErrorKind::not_supported) {
      const std::string why = tracer.error().message;
      options.descendants_only = false;
      plan_->scope = *usdt::OneProcess::of(child_->pid());
      tracer = usdt::Tracer::start(plan_, options);
      if (tracer) notice(flags_, fmt::format("only the command's own process is traced, not its children: {}", why));
    }
    if (!tracer) return usdt::fail(tracer.error());
    tracer_.emplace(std::move(*tracer));
    came_.wakes(&*tracer_);
    begin_output();
    const auto took = std::chrono::duration<double, std::milli>(Clock::now() - started_).count();
    report_skipped(flags_, *tracer_);
    const std::string carriers =
        flags_.verbose ? fmt::format(", specs by {}", tracer_->link().carrier_text()) : std::string();
    tell(fmt::format("attached {}{}, after {:.1f} ms", attached_text(flags_, *tracer_), carriers, took));
    flush();  // the heading, before what the command says
    if (first_) tell(attached(*first_, *plan_, tracer_->link().attached()));
    return {};
  }

  /// Traces what came.
  void take_followed() {
    if (first_) following_.done(*std::exchange(first_, std::nullopt));
    for (const usdt::FollowEvent& event : std::exchange(rest_, {})) follow(event);
    for (const usdt::FollowEvent& event : following_.take()) follow(event);
  }

  void follow(const usdt::FollowEvent& event) {
    auto more = recorder_ != nullptr || flags_.view.question || !flags_.ends.empty()
                    ? not_taken()
                    : plan_more(flags_, subjects_, event.file);
    more ? follow(event, std::move(*more)) : tell(refused(event, more.error()));
    following_.done(event);
  }

  /// Recordings, tables and spans are of one plan.
  static usdt::Result<PlannedTrace> not_taken() {
    return usdt::fail(usdt::ErrorKind::not_supported,
                      "a recording, a table or a span has what there was when it began");
  }

  void follow(const usdt::FollowEvent& event, PlannedTrace more) {
    const usdt::AttachPlan part = more.plan;
    more.plan.scope = plan_->scope;
    printed_.of_probe.insert(printed_.of_probe.end(), more.printed.of_probe.begin(), more.printed.of_probe.end());
    auto added = tracer_->add(std::move(more.plan));
    printed_.of_probe.resize(tracer_->plan().probes.size());
    for (Sink& sink : sinks_) sink.output().trace(tracer_->plan());
    tell(added ? attached(event, part, added->attached) : refused(event, added.error()));
  }

  static Followed came(const usdt::FollowEvent& event) {
    Followed followed;
    followed.kind = event.kind;
    followed.pid = event.pid;
    followed.file = event.file.target.path.native();
    followed.time = event.time;
    return followed;
  }
  static Followed refused(const usdt::FollowEvent& event, const usdt::Error& error) {
    Followed followed = came(event);
    followed.error = error.message;
    return followed;
  }
  static Followed attached(const usdt::FollowEvent& event, const usdt::AttachPlan& part, std::size_t sites) {
    Followed followed = came(event);
    const auto now = Clock::now().time_since_epoch();  // CLOCK_MONOTONIC, as that of events
    const auto now_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
    followed.after_ns = now_ns - std::min(now_ns, event.time);
    followed.probes = part.probes.size();
    followed.sites = part.sites.size();
    followed.attached = sites;
    return followed;
  }

  void tell(const Followed& followed) {
    tell(followed_text(followed));
    for (Sink& sink : sinks_)
      if (tracer_) sink.output().followed(followed);
  }

  void report_changes() {
    const auto changes = tracer_->link().changes();
    for (; changes_told_ < changes.size(); ++changes_told_)
      tell(change_text(tracer_->plan(), changes[changes_told_], following_.begun()));
    nothing_left_ = changes_told_ > 0 && tracer_->link().attached() == 0;
  }

  [[nodiscard]] bool target_ended() {
    return (child_ && child_->ended()) || (!subjects_.pids.empty() && watch_->living().empty());
  }

  [[nodiscard]] Clock::time_point deadline() const {
    if (!flags_.duration_seconds) return Clock::time_point::max();
    return Clock::now() +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*flags_.duration_seconds));
  }

  usdt::Result<void> trace() {
    constexpr std::chrono::milliseconds longest_wait{50};
    // A command goes on to its end, whether there is anything to see or not.
    while (!over() && shown_ < flags_.max_events && !target_ended() && (child_ || !nothing_left_)) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now());
      auto events = take(std::clamp(left, std::chrono::milliseconds(0), longest_wait));
      if (!events) return usdt::fail(events.error());
      pause_while_recording(*events);
      if (auto shown = show_table_so_far(); !shown) return shown;
      bool written = true;
      for (Sink& sink : sinks_)
        written &= sink.output().flush([this](std::chrono::milliseconds) { return !over(); }) == Output::Flushed::all;
      if (!written) break;
      report_changes();
      if (tracer_->find_cgroups()) tell("followed: a cgroup went, or came again");
      take_followed();
      if (recorder_ != nullptr && recorder_->account_due()) recorder_->account(summary());
    }
    return {};
  }

  /// With --interval, when it is time; where some were missed, the next one is not late for them.
  usdt::Result<void> show_table_so_far() {
    const auto now = Clock::now();
    if (!flags_.view.interval || now < next_table_) return {};
    const auto interval =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*flags_.view.interval));
    const bool first = next_table_ == Clock::time_point();
    next_table_ = first || now - next_table_ > interval ? now + interval : next_table_ + interval;
    if (first) slicer_ = HeatSlicer(wall_time());
    return first ? usdt::Result<void>() : show_table(false);
  }

  static std::int64_t wall_time() {
    return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  }

  usdt::Result<void> show_table(bool last) {
    auto rows = tracer_->table();
    if (!rows) return usdt::fail(rows.error());
    if (flags_.view.heat_map) {
      const HeatSlice slice = slicer_.cut(*rows, wall_time());
      for (Sink& sink : sinks_)
        if (sink.is_written()) sink.output().heat(slice, last);
      return {};
    }
    for (Sink& sink : sinks_)
      if (sink.is_written()) sink.output().table(*plan_->table, *rows);
    return {};
  }

  /// Nobody sees what is only recorded: it is taken in larger portions, since most of the work is to look so often. The
  /// ring has room for far more than what comes meanwhile.
  void pause_while_recording(std::size_t events) const {
    constexpr std::size_t few = 2048, enough = 100'000;
    const std::size_t room = (std::size_t{flags_.ring_megabytes} << 20) / tracer_->layout().record_size();
    if (recorder_ == nullptr || sinks_.size() > 1 || events == 0 || events >= few || room < enough) return;
    const timespec pause{.tv_sec = 0, .tv_nsec = 10'000'000};
    ::nanosleep(&pause, nullptr);  // a signal ends it
  }

  /// Takes events out of the ring into the output.
  usdt::Result<std::size_t> take(std::chrono::milliseconds wait) {
    constexpr std::uint64_t batch = 4096;
    constexpr std::uint64_t much = 1 << 20;
    const auto show = [this](const usdt::Event& event) {
      around_->begin(event);
      if (dump_on_ && !dump_asked_) dump_asked_ = (*dump_on_)(event).value_or(false);
      for (Sink& sink : sinks_) {
        sink.output().event(event);
        if (sink.output().pending() > much)
          static_cast<void>(sink.output().flush([this](std::chrono::milliseconds) { return patient(); }));
      }
    };
    const auto most = static_cast<std::size_t>(std::min(batch, flags_.max_events - shown_));
    auto events = tracer_->poll(show, wait, most);
    if (events) shown_ += *events;
    return events;
  }

  /// Detaches, hands over what is still in the ring, and accounts for every hit.
  void finish() {
    report_changes();
    tracer_->detach();
    flush();
    while (shown_ < flags_.max_events) {
      auto events = take(std::chrono::milliseconds(0));
      if (!events || *events == 0) break;
      flush();
    }
    tracer_->drain(nullptr);
    if (flags_.view.question) {
      if (auto shown = show_table(true); !shown) usdt::tools::print_error(tool, shown.error());
    }
    if (recorder_ != nullptr) recorder_->dump(summary());
    flush();
    ledger_.emplace(flags_, tracer_->plan(),
                    Ledger::Facts{.summary = summary(),
                                  .shown = shown_,
                                  .followed = following_.begun(),
                                  .nothing_left = nothing_left_ && !child_});
    for (Sink& sink : sinks_)
      if (sink.is_written()) sink.output().summary(ledger_->summary());
    flush();
    ledger_->print();
    if (const std::string account = following_.account(); !account.empty()) notice(flags_, account);
    if (child_) {
      own_code_ = child_->ended();
      child_->stop(std::chrono::seconds(2));
    }
  }

  void flush() {
    for (Sink& sink : sinks_) sink.flush([this](std::chrono::milliseconds) { return patient(); });
  }

  [[nodiscard]] Summary summary() const {
    return {.probes = accounts(),
            .skipped = skipped_sites(*tracer_),
            .missed = tracer_->missed(),
            .changed = tracer_->link().changes(),
            .missed_hits = tracer_->missed_hits(),
            .undecided = tracer_->undecided()};
  }

  /// What the tracer counted, less what was not written everywhere.
  [[nodiscard]] std::vector<Account> accounts() const {
    std::vector<Account> all;
    const usdt::AttachPlan& plan = tracer_->plan();
    const auto forgotten =
        recorder_ != nullptr ? by_account(plan, recorder_->forgotten()) : std::vector<std::uint64_t>();
    std::vector<std::vector<std::uint64_t>> not_written;
    for (const Sink& sink : sinks_) not_written.push_back(by_account(plan, sink.output().not_written()));
    for (const usdt::ProbeCounts& counts : tracer_->counts()) {
      Account& account = all.emplace_back();
      static_cast<usdt::ProbeCounts&>(account) = counts;
      for (const auto& of_sink : not_written)
        account.not_written = std::max(account.not_written, of_sink[all.size() - 1]);
      if (all.size() <= forgotten.size()) {
        account.delivered -= forgotten[all.size() - 1];
        account.discarded += forgotten[all.size() - 1];
      }
      account.delivered -= account.not_written;
    }
    return all;
  }

  [[nodiscard]] int exit_code() {
    bool failed = false;
    std::uint64_t unreadable = 0;
    for (const Sink& sink : sinks_) {
      failed |= sink.failed();
      unreadable += sink.output().unreadable();
    }
    if (failed) return run_time_failure;
    if (flags_.strict && (ledger_->has_losses() || unreadable > 0)) return strict_failure;
    if (nothing_left_ && !child_) return run_time_failure;
    return end_asked_for() ? success : own_code_.value_or(success);
  }

  const Flags& flags_;
  Clock::time_point started_;
  std::optional<std::filesystem::path> program_;
  std::optional<ProcessWatch> watch_;
  Subjects subjects_;
  std::optional<Child> child_;
  bool released_ = false;                     ///< the command
  std::shared_ptr<usdt::AttachPlan> plan_;    ///< what the trace begins with
  Printed printed_;                           ///< of the tracer's plan
  std::optional<usdt::FollowEvent> first_;    ///< with --wait: what was waited for,
  std::optional<PlannedTrace> first_plan_;    ///< its plan,
  std::vector<usdt::FollowEvent> rest_ = {};  ///< and what came with it
  std::optional<usdt::Tracer> tracer_;
  Arrival came_;
  Following following_{flags_};  ///< its thread ends before what it wakes
  std::optional<LiveSurroundings> around_;
  std::vector<Sink> sinks_;
  Recorder* recorder_ = nullptr;  ///< of one of them
  std::optional<usdt::EventFilter> dump_on_;
  bool dump_asked_ = false;
  std::optional<Ledger> ledger_;
  std::uint64_t shown_ = 0;
  std::size_t changes_told_ = 0;
  bool nothing_left_ = false;  ///< every site was let go
  Clock::time_point end_ = Clock::time_point::max();
  Clock::time_point next_table_;
  HeatSlicer slicer_{wall_time()};
  std::optional<Clock::time_point> last_patience_;
  std::optional<int> own_code_;  ///< of the command, where it ended by itself
};

}  // namespace

int run(const Flags& flags) {
  ignore_write_signals();
  Session session(flags);
  auto code = session.run();
  return code ? *code : complain(code.error(), flags);
}

}  // namespace usdt_trace
