// SPDX-License-Identifier: BSD-2-Clause
#include "session.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "attached.hpp"
#include "child.hpp"
#include "common/report.hpp"
#include "common/stream.hpp"
#include "ending.hpp"
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

class Session {
 public:
  explicit Session(const Flags& flags) : flags_(flags) {}

  usdt::Result<int> run() {
    started_ = Clock::now();
    usdt::tools::set_patience([this](std::chrono::milliseconds) { return patient(); });
    if (auto opened = open_output(); !opened) return usdt::fail(opened.error());
    // Before anything else is known of them: whatever the processes do from now on is seen.
    watch_.emplace(flags_.pids);
    if (auto held = hold_command(); !held) return usdt::fail(held.error());
    auto subjects = find_subjects();
    if (!subjects) return usdt::fail(subjects.error());
    if (auto planned = plan(*subjects); !planned) return usdt::fail(planned.error());
    if (auto attached = attach(); !attached) return usdt::fail(attached.error());
    if (child_) {
      if (auto released = child_->release(); !released) return usdt::fail(released.error().within(flags_.command[0]));
    }
    auto followed = follow();
    finish();
    if (!followed) return usdt::fail(followed.error());
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
      auto recorder = std::make_unique<RecordOutput>(*tracer_, printed_, flags_, *around_, sinks_.back().stream());
      recorder_ = recorder.get();
      sinks_.back().show_by(std::move(recorder));
    }
    if (flags_.record.empty() || !flags_.output.empty())
      sinks_.front().show_by(line_output(plan_, printed_, flags_, *around_, sinks_.front().stream()));
  }

  /// To people, and to those who read the recording.
  void tell(const std::string& text) {
    notice(flags_, text);
    if (recorder_ != nullptr) recorder_->notice(text);
  }

  /// Nobody waits for this trace to go on: its time is over, or a signal came.
  [[nodiscard]] bool over() const { return end_asked_for() || Clock::now() >= end_; }

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

  usdt::Result<void> plan(const Subjects& subjects) {
    pids_ = subjects.pids;
    auto planned = plan_trace(flags_, subjects);
    if (!planned) return usdt::fail(planned.error());
    plan_ = std::move(planned->plan);
    printed_ = std::move(planned->printed);
    return {};
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
    if (child_ && !flags_.follow) plan_.scope = *usdt::OneProcess::of(child_->pid());
    if (flags_.children) {
      auto family = usdt::Processes::of(pids_);
      if (!family) return usdt::fail(family.error());
      options.family_of = std::move(*family);
    }
    catch_signals();
    auto tracer = usdt::Tracer::start(shared_plan_, options);
    if (!tracer && options.descendants_only && tracer.error().kind == usdt::ErrorKind::not_supported) {
      const std::string why = tracer.error().message;
      options.descendants_only = false;
      plan_.scope = *usdt::OneProcess::of(child_->pid());
      tracer = usdt::Tracer::start(shared_plan_, options);
      if (tracer) notice(flags_, fmt::format("only the command's own process is traced, not its children: {}", why));
    }
    if (!tracer) return usdt::fail(tracer.error());
    tracer_.emplace(std::move(*tracer));
    begin_output();
    const auto took = std::chrono::duration<double, std::milli>(Clock::now() - started_).count();
    report_skipped(flags_, *tracer_);
    const std::string carriers =
        flags_.verbose ? fmt::format(", specs by {}", tracer_->link().carrier_text()) : std::string();
    tell(fmt::format("attached {}{}, after {:.1f} ms", attached_text(flags_, *tracer_), carriers, took));
    flush();  // the heading, before what the command says
    return {};
  }

  void report_changes() {
    const auto changes = tracer_->link().changes();
    for (; changes_told_ < changes.size(); ++changes_told_) tell(change_text(plan_, changes[changes_told_]));
    nothing_left_ = changes_told_ > 0 && tracer_->link().attached() == 0;
  }

  [[nodiscard]] bool target_ended() {
    return (child_ && child_->ended()) || (!pids_.empty() && watch_->living().empty());
  }

  [[nodiscard]] Clock::time_point deadline() const {
    if (!flags_.duration_seconds) return Clock::time_point::max();
    return Clock::now() +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*flags_.duration_seconds));
  }

  usdt::Result<void> follow() {
    end_ = deadline();
    constexpr std::chrono::milliseconds longest_wait{50};
    // A command goes on to its end, whether there is anything to see or not.
    while (!over() && shown_ < flags_.max_events && !target_ended() && (child_ || !nothing_left_)) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now());
      if (auto events = take(std::clamp(left, std::chrono::milliseconds(0), longest_wait)); !events)
        return usdt::fail(events.error());
      if (auto shown = show_table_so_far(); !shown) return shown;
      bool written = true;
      for (Sink& sink : sinks_)
        written &= sink.output().flush([this](std::chrono::milliseconds) { return !over(); }) == Output::Flushed::all;
      if (!written) break;
      report_changes();
      if (recorder_ != nullptr && recorder_->account_due()) recorder_->account(summary());
    }
    return {};
  }

  /// With --interval, when it is time.
  usdt::Result<void> show_table_so_far() {
    if (!flags_.view.interval || Clock::now() < next_table_) return {};
    const auto interval =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*flags_.view.interval));
    const bool first = next_table_ == Clock::time_point();
    next_table_ = Clock::now() + interval;
    return first ? usdt::Result<void>() : show_table();
  }

  usdt::Result<void> show_table() {
    auto rows = tracer_->table();
    if (!rows) return usdt::fail(rows.error());
    for (Sink& sink : sinks_)
      if (sink.is_written()) sink.output().table(*plan_.table, *rows);
    return {};
  }

  /// Takes events out of the ring into the output.
  usdt::Result<std::size_t> take(std::chrono::milliseconds wait) {
    constexpr std::uint64_t batch = 4096;
    constexpr std::uint64_t much = 1 << 20;
    const auto show = [this](const usdt::Event& event) {
      around_->begin(event);
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
      if (auto shown = show_table(); !shown) usdt::tools::print_error(tool, shown.error());
    }
    ledger_.emplace(flags_, plan_,
                    Ledger::Facts{.summary = summary(), .shown = shown_, .nothing_left = nothing_left_ && !child_});
    for (Sink& sink : sinks_)
      if (sink.is_written()) sink.output().summary(ledger_->summary());
    flush();
    ledger_->print();
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
    for (const usdt::ProbeCounts& counts : tracer_->counts()) {
      Account& account = all.emplace_back();
      static_cast<usdt::ProbeCounts&>(account) = counts;
      for (const Sink& sink : sinks_)
        account.not_written = std::max(account.not_written, sink.output().not_written()[all.size() - 1]);
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
  std::vector<pid_t> pids_;  ///< those of --pid that lived
  std::optional<Child> child_;
  std::shared_ptr<usdt::AttachPlan> shared_plan_ = std::make_shared<usdt::AttachPlan>();
  usdt::AttachPlan& plan_ = *shared_plan_;
  Printed printed_;
  std::optional<usdt::Tracer> tracer_;
  std::optional<LiveSurroundings> around_;
  std::vector<Sink> sinks_;
  RecordOutput* recorder_ = nullptr;  ///< of one of them
  std::optional<Ledger> ledger_;
  std::uint64_t shown_ = 0;
  std::size_t changes_told_ = 0;
  bool nothing_left_ = false;  ///< every site was let go
  Clock::time_point end_ = Clock::time_point::max();
  Clock::time_point next_table_;
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
