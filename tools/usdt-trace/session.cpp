// SPDX-License-Identifier: BSD-2-Clause
#include "session.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <system_error>

#include "attached.hpp"
#include "child.hpp"
#include "common/report.hpp"
#include "common/stream.hpp"
#include "ledger.hpp"
#include "notice.hpp"
#include "output.hpp"
#include "planning.hpp"
#include "process_watch.hpp"
#include "signals.hpp"

namespace usdt_trace {
namespace {

using Clock = std::chrono::steady_clock;
using usdt::tools::counted;

constexpr std::string_view tool = "usdt-trace";

/// design.md section 7.
enum ExitCode : int { success = 0, run_time_failure = 1, usage = 2, strict_failure = 3 };

/// Where the rest of what the kernel's verifier said is, or how to get it.
std::string keep_verifier_log(const std::string& log, const std::string& file) {
  const auto lines = counted(static_cast<std::size_t>(std::count(log.begin(), log.end(), '\n')), "line");
  if (file.empty()) return fmt::format("--verifier-log FILE writes the verifier's whole log ({}) to FILE", lines);
  std::ofstream out(file);
  if (out << log << std::flush) return fmt::format("the verifier's whole log ({}) is in {}", lines, file);
  return usdt::os_failure(usdt::ErrorKind::io, fmt::format("write the verifier's log to {}", file), errno).message;
}

int complain(const usdt::Error& error, const Flags& flags) {
  usdt::tools::print_error(tool, error);
  if (!error.log.empty()) usdt::tools::print_notice(keep_verifier_log(error.log, flags.verifier_log));
  const bool their_input = error.kind == usdt::ErrorKind::syntax || error.kind == usdt::ErrorKind::invalid_argument;
  return their_input ? usage : run_time_failure;
}

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
  usdt::Result<void> open_output() {
    if (flags_.output.empty()) {
      out_ = std::make_unique<usdt::tools::Stream>(STDOUT_FILENO);
      return {};
    }
    auto file = usdt::tools::Stream::create(flags_.output);
    if (!file) return usdt::fail(file.error());
    out_ = std::make_unique<usdt::tools::Stream>(std::move(*file));
    return {};
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
    output_ = flags_.format == Format::json ? json_output(plan_, printed_, flags_, *out_)
                                            : text_output(plan_, printed_, flags_, *out_);
    const auto took = std::chrono::duration<double, std::milli>(Clock::now() - started_).count();
    report_skipped(flags_, *tracer_);
    const std::string carriers =
        flags_.verbose ? fmt::format(", specs by {}", tracer_->link().carrier_text()) : std::string();
    notice(flags_, fmt::format("attached {}{}, after {:.1f} ms", attached_text(flags_, *tracer_), carriers, took));
    flush();  // the heading, before what the command says
    return {};
  }

  void report_changes() {
    const auto changes = tracer_->link().changes();
    for (; changes_told_ < changes.size(); ++changes_told_) notice(flags_, change_text(plan_, changes[changes_told_]));
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
      if (output_->flush([this](std::chrono::milliseconds) { return !over(); }) != Output::Flushed::all) break;
      report_changes();
    }
    return {};
  }

  /// Takes events out of the ring into the output.
  usdt::Result<std::size_t> take(std::chrono::milliseconds wait) {
    constexpr std::uint64_t batch = 4096;
    constexpr std::uint64_t much = 1 << 20;
    const auto show = [this](const usdt::Event& event) {
      output_->event(event);
      if (output_->pending() > much)
        static_cast<void>(output_->flush([this](std::chrono::milliseconds) { return patient(); }));
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
    ledger_.emplace(
        flags_, plan_,
        Ledger::Facts{.summary = {accounts(), skipped_sites(*tracer_), tracer_->missed(), tracer_->link().changes()},
                      .missed = tracer_->missed_hits(),
                      .undecided = tracer_->undecided(),
                      .shown = shown_,
                      .nothing_left = nothing_left_ && !child_});
    if (written_) {
      output_->summary(ledger_->summary());
      flush();
    }
    ledger_->print();
    if (child_) {
      own_code_ = child_->ended();
      child_->stop(std::chrono::seconds(2));
    }
  }

  /// Where the reader sleeps on, or there is none, the rest is given up.
  void flush() {
    if (!written_) return;
    const auto result = output_->flush([this](std::chrono::milliseconds) { return patient(); });
    written_ = result == Output::Flushed::all;
    if (result == Output::Flushed::waiting) output_->give_up();
  }

  /// What the tracer counted, less what was not written.
  [[nodiscard]] std::vector<Account> accounts() const {
    std::vector<Account> all;
    for (const usdt::ProbeCounts& counts : tracer_->counts()) {
      Account& account = all.emplace_back();
      static_cast<usdt::ProbeCounts&>(account) = counts;
      account.not_written = output_->not_written()[all.size() - 1];
      account.delivered -= account.not_written;
    }
    return all;
  }

  [[nodiscard]] int exit_code() {
    if (output_failed()) return run_time_failure;
    if (flags_.strict && (ledger_->has_losses() || output_->unreadable() > 0)) return strict_failure;
    if (nothing_left_ && !child_) return run_time_failure;
    return end_asked_for() ? success : own_code_.value_or(success);
  }

  /// True, and said, where output could not be written. A reader who has seen enough (`| head`) is no failure.
  [[nodiscard]] bool output_failed() const {
    if (written_ || out_->error() == EPIPE) return false;
    const std::string where = flags_.output.empty() ? "standard output" : flags_.output;
    const std::string why = out_->error() == 0       ? "its reader took nothing for a second"
                            : out_->error() == EBADF ? "it is closed"
                                                     : std::system_category().message(out_->error());
    usdt::tools::print_notice(tool, fmt::format("{}: {}; what is missing there is counted as not_written", where, why));
    return true;
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
  std::unique_ptr<usdt::tools::Stream> out_;
  std::unique_ptr<Output> output_;
  std::optional<Ledger> ledger_;
  std::uint64_t shown_ = 0;
  std::size_t changes_told_ = 0;
  bool nothing_left_ = false;  ///< every site was let go
  bool written_ = true;        ///< all output so far
  Clock::time_point end_ = Clock::time_point::max();
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
