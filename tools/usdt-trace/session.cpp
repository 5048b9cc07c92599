// SPDX-License-Identifier: BSD-2-Clause
#include "session.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <system_error>

#include "child.hpp"
#include "common/report.hpp"
#include "common/stream.hpp"
#include "missed.hpp"
#include "output.hpp"
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

/// Watches whether a process of others is still there.
class ProcessWatch {
 public:
  explicit ProcessWatch(pid_t pid) : fd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {
    gone_ = fd_ < 0 && errno == ESRCH;
  }
  ~ProcessWatch() {
    if (fd_ >= 0) ::close(fd_);
  }
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;
  [[nodiscard]] bool ended() const {
    pollfd entry{fd_, POLLIN, 0};
    return gone_ || (fd_ >= 0 && ::poll(&entry, 1, 0) == 1);
  }

 private:
  int fd_;
  bool gone_;
};

class Session {
 public:
  explicit Session(const Flags& flags) : flags_(flags) {}

  usdt::Result<int> run() {
    started_ = Clock::now();
    usdt::tools::set_patience([this](std::chrono::milliseconds) { return patient(); });
    if (auto opened = open_output(); !opened) return usdt::fail(opened.error());
    // Before anything else is known of it: whatever the process does from now on is seen.
    if (flags_.pid) watch_.emplace(*flags_.pid);
    if (auto held = hold_command(); !held) return usdt::fail(held.error());
    if (auto planned = plan(); !planned) return usdt::fail(planned.error());
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

  usdt::Result<void> plan() {
    usdt::SearchScope scope;
    if (flags_.pid) scope.pids = {*flags_.pid};
    if (flags_.children) add_living_children(scope.pids);
    if (child_) scope.program = program_;
    auto selection = flags_.patterns.empty() ? usdt::Result<usdt::Selection>(usdt::Selection{})
                                             : usdt::select_probes(flags_.patterns, scope);
    if (!selection) return usdt::fail(selection.error());
    auto kernel = flags_.kernel_patterns.empty() ? usdt::Result<usdt::KernelSelection>(usdt::KernelSelection{})
                                                 : usdt::select_kernel(flags_.kernel_patterns, {flags_.skip_unknown});
    if (!kernel) return usdt::fail(kernel.error());
    for (const std::string& unknown : kernel->unknown) notice(fmt::format("left out: {}", unknown));
    for (const usdt::ProbeFile& file : selection->files) {
      for (const usdt::ScanWarning& warning : file.warnings)
        notice(fmt::format("{}: {}", file.target.path.string(), warning.message));
    }
    usdt::PlanOptions options;
    if (flags_.pid && !flags_.children) {
      auto one = usdt::OneProcess::of(*flags_.pid);
      if (!one) return usdt::fail(one.error());
      options.scope = *one;
    }
    std::vector<usdt::KernelKind> kinds;
    options.allow_unsafe_nop5 = flags_.allow_unsafe_nop5;
    for (const PrintItem& item : flags_.print) ask_for_text(item, options);
    if (!flags_.kernel_patterns.empty()) {
      for (const usdt::KernelPattern& pattern : flags_.kernel_patterns) kinds.push_back(pattern.kind);
      options.kernel_backend = flags_.kernel_backend;
      options.capture_text = flags_.print.empty() && !flags_.count_only;
    }
    auto planned =
        usdt::plan_attach(selection->files, *kernel, usdt::kernel_facts(kinds, flags_.kernel_backend), options);
    if (!planned) return usdt::fail(planned.error());
    plan_ = std::move(*planned);
    return check_print_list();
  }

  /// Children may have loaded other files; those that end meanwhile have none.
  void add_living_children(std::vector<pid_t>& pids) const {
    for (const pid_t child : usdt::descendants_of(*flags_.pid)) {
      if (usdt::files_of_process(child)) pids.push_back(child);
    }
  }

  static void ask_for_text(const PrintItem& item, usdt::PlanOptions& options) {
    if (item.form != PrintItem::Form::text) return;
    if (item.length) {
      const usdt::ArgName text = item.arg ? usdt::ArgName(*item.arg) : usdt::ArgName(item.name);
      options.bounded_strings.push_back({text, *item.length});
      return;
    }
    if (item.arg)
      options.strings.push_back(*item.arg);
    else
      options.string_names.push_back(item.name);
    if (item.name == kReturnValue) options.string_results = true;
  }

  /// An argument no site has is a mistake, one that some sites lack is not.
  usdt::Result<void> check_print_list() const {
    for (const PrintItem& item : flags_.print) {
      const bool exists = std::any_of(plan_.args.begin(), plan_.args.end(), [&](const auto& args) {
        return position_of(item, args) && (!item.length || usdt::find_arg(args, *item.length));
      });
      if (!exists)
        return usdt::fail(usdt::ErrorKind::invalid_argument,
                          fmt::format("--print {}: no such argument: {}", item.label, what_there_is()));
    }
    return {};
  }

  /// "fentry:vfs_read(struct file *file, ...); ...": the first few signatures of the plan.
  [[nodiscard]] std::string what_there_is() const {
    constexpr std::size_t most = 3;
    std::vector<bool> seen(plan_.args.size());
    std::vector<std::string> shown;
    bool numbers = false;
    for (const usdt::PlannedSite& site : plan_.sites) {
      if (seen[site.args] || shown.size() == most) continue;
      seen[site.args] = true;
      const usdt::PlannedProbe& probe = plan_.probes[site.probe];
      numbers |= site.file != usdt::kNone;
      shown.push_back(fmt::format("{}:{}{}", probe.provider, probe.name, signature(plan_.args[site.args])));
    }
    const bool more = std::count(seen.begin(), seen.end(), true) < static_cast<std::ptrdiff_t>(seen.size());
    return fmt::format("{}{}{}", fmt::join(shown, "; "), more ? "; ..." : "",
                       numbers ? "; arguments count from arg0" : "");
  }

  /// "(i32, u64)", of kernel functions with names: "(struct file *file, size_t count), retval ssize_t".
  static std::string signature(const std::vector<usdt::Arg>& args) {
    std::vector<std::string> shown;
    std::string result;
    for (const usdt::Arg& arg : args) {
      const std::string type = arg.type.empty() ? usdt::type_name(arg) : arg.type;
      if (arg.result)
        result = fmt::format(", {} {}", kReturnValue, type);
      else
        shown.push_back(arg.name.empty() ? type : fmt::format("{}{}{}", type, type.back() == '*' ? "" : " ", arg.name));
    }
    return fmt::format("({}){}", fmt::join(shown, ", "), result);
  }

  usdt::Result<void> attach() {
    usdt::TraceOptions options;
    options.backend = flags_.backend;
    options.carrier = flags_.carrier;
    options.max_programs = flags_.max_programs;
    options.string_size = flags_.string_size;
    options.ring_bytes = flags_.ring_megabytes << 20;
    options.kernel_stack_depth = flags_.kernel_stack_depth;
    options.count_only = flags_.count_only;
    options.wait_for_pages = flags_.wait_for_pages;
    options.descendants_only = child_ && flags_.follow;
    if (child_ && !flags_.follow) plan_.scope = *usdt::OneProcess::of(child_->pid());
    if (flags_.children) options.family_of = *usdt::OneProcess::of(*flags_.pid);
    catch_signals();
    auto tracer = usdt::Tracer::start(shared_plan_, options);
    if (!tracer && options.descendants_only && tracer.error().kind == usdt::ErrorKind::not_supported) {
      const std::string why = tracer.error().message;
      options.descendants_only = false;
      plan_.scope = *usdt::OneProcess::of(child_->pid());
      tracer = usdt::Tracer::start(shared_plan_, options);
      if (tracer) notice(fmt::format("only the command's own process is traced, not its children: {}", why));
    }
    if (!tracer) return usdt::fail(tracer.error());
    tracer_.emplace(std::move(*tracer));
    output_ = flags_.format == Format::json ? json_output(plan_, flags_, *out_) : text_output(plan_, flags_, *out_);
    const auto took = std::chrono::duration<double, std::milli>(Clock::now() - started_).count();
    report_skipped();
    const std::string carriers =
        flags_.verbose ? fmt::format(", specs by {}", tracer_->link().carrier_text()) : std::string();
    notice(fmt::format("attached {}{}, after {:.1f} ms", attached_text(), carriers, took));
    return {};
  }

  /// "3 sites of 2 probes in 1 file, and 409 kernel functions"; with -v each with "by tracing_multi".
  [[nodiscard]] std::string attached_text() const {
    std::vector<std::string> parts;
    std::size_t in_files = tracer_->link().attached();
    std::map<std::string_view, std::size_t> in_kernel;
    for (const auto& [way, count] : attached_in_kernel()) {
      in_files -= count;
      const bool tracepoints = way == usdt::Backend::raw_tp || way == usdt::Backend::tp_btf;
      const std::string_view what = tracepoints ? "raw tracepoint" : "kernel function";
      in_kernel[what] += count;
      if (flags_.verbose) parts.push_back(counted(count, what) + by(way));
    }
    for (const auto& [what, count] : in_kernel)
      if (!flags_.verbose) parts.push_back(counted(count, what));
    if (!plan_.files.empty()) {
      const auto probes = std::count_if(plan_.probes.begin(), plan_.probes.end(),
                                        [](const usdt::PlannedProbe& probe) { return probe.file != usdt::kNone; });
      parts.insert(parts.begin(), fmt::format("{} of {} in {}{}", counted(in_files, "site"),
                                              counted(static_cast<std::size_t>(probes), "probe"),
                                              counted(plan_.files.size(), "file"), by(tracer_->link().backend())));
    }
    return fmt::format("{}", fmt::join(parts, ", and "));
  }

  [[nodiscard]] std::string by(usdt::Backend way) const {
    return flags_.verbose ? fmt::format(" by {}", to_string(way)) : std::string();
  }

  /// How many functions and tracepoints by each way.
  [[nodiscard]] std::map<usdt::Backend, std::size_t> attached_in_kernel() const {
    std::vector<bool> refused(plan_.probes.size());
    for (const usdt::SkippedSite& site : tracer_->link().refused()) refused[site.probe] = true;
    std::map<usdt::Backend, std::size_t> counts;
    for (const usdt::PlannedKernel& group : plan_.kernels) {
      const auto attached = std::count_if(group.sites.begin(), group.sites.end(),
                                          [&](std::uint32_t site) { return !refused[plan_.sites[site].probe]; });
      if (attached > 0) counts[group.backend] += static_cast<std::size_t>(attached);
    }
    return counts;
  }

  [[nodiscard]] std::vector<usdt::SkippedSite> skipped() const {
    std::vector<usdt::SkippedSite> all = plan_.skipped;
    const auto& refused = tracer_->link().refused();
    all.insert(all.end(), refused.begin(), refused.end());
    return all;
  }

  /// The first of them each, the rest counted by reason.
  void report_skipped() const {
    constexpr std::size_t most = 10;
    const auto all = skipped();
    for (std::size_t i = 0; i < std::min(all.size(), most); ++i) {
      const std::string where = all[i].file == usdt::kNone ? "" : fmt::format(" at {:#x}", all[i].pc.value);
      notice(fmt::format("not attached: {}{}: {}", full_name(plan_, plan_.probes[all[i].probe]), where, all[i].reason));
    }
    if (all.size() <= most) return;
    std::map<std::string_view, std::size_t> by_reason;
    for (std::size_t i = most; i < all.size(); ++i) ++by_reason[all[i].reason];
    std::vector<std::pair<std::size_t, std::string_view>> reasons;
    for (const auto& [reason, count] : by_reason) reasons.emplace_back(count, reason);
    std::sort(reasons.begin(), reasons.end(), std::greater<>());
    std::size_t rest = 0;
    for (std::size_t i = 0; i < reasons.size(); ++i) {
      if (i < most)
        notice(fmt::format("not attached: {} more: {}", reasons[i].first, reasons[i].second));
      else
        rest += reasons[i].first;
    }
    if (rest > 0) notice(fmt::format("not attached: {} more, for other reasons", rest));
  }

  /// "/usr/lib/libx.so was written to: ...", of one change.
  [[nodiscard]] std::string change_text(const usdt::FileChange& change) const {
    const std::string path = plan_.files[change.file].target.path.string();
    switch (change.kind) {
      case usdt::FileChangeKind::written:
        return fmt::format("{} was written to: its {} let go, since programs that start now would die of them", path,
                           counted(change.let_go, "site") + (change.let_go == 1 ? " is" : " are"));
      case usdt::FileChangeKind::replaced:
        return fmt::format(
            "{} names another file now: processes that have the old one mapped are traced on, those "
            "that start from now on are not",
            path);
      case usdt::FileChangeKind::removed:
        return fmt::format("{} was removed: processes that have it mapped are traced on", path);
    }
    return path;
  }

  void report_changes() {
    const auto changes = tracer_->link().changes();
    for (; changes_told_ < changes.size(); ++changes_told_) notice(change_text(changes[changes_told_]));
    nothing_left_ = changes_told_ > 0 && tracer_->link().attached() == 0;
  }

  [[nodiscard]] bool target_ended() { return (child_ && child_->ended()) || (watch_ && watch_->ended()); }

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
    auto events = tracer_->poll(show, wait, std::min(batch, flags_.max_events - shown_));
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
    missed_ = tracer_->missed_hits();
    summary_ = {accounts(), skipped(), tracer_->missed(), tracer_->link().changes()};
    if (written_) {
      output_->summary(summary_);
      flush();
    }
    print_ledger();
    hint_at_children();
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

  /// Always printed, zeroes included.
  void print_ledger() const {
    const Account total = summary_.total();
    if (flags_.count_only) {
      const auto silent = std::count_if(summary_.probes.begin(), summary_.probes.end(),
                                        [](const Account& probe) { return probe.hits == 0; });
      say(fmt::format("{} counted; {} without hits{}", counted(total.hits, "hit"),
                      counted(static_cast<std::size_t>(silent), "probe"), missed_text(missed_)));
      print_losers();
      print_changes();
      return;
    }
    say(fmt::format("{} of {}{}; lost: {}{}", counted(total.delivered, "event"), counted(total.hits, "hit"),
                    limit_text(total), lost_text(total), missed_text(missed_)));
    print_losers();
    print_changes();
    if (const std::uint64_t unknown = tracer_->undecided(); unknown > 0)
      say(fmt::format("  {} not counted: processes too many generations down to tell whether they are the command's",
                      counted(unknown, "hit")));
    if (total.ring_full > 0) say(fmt::format("  a larger --ring-size than {} MiB loses fewer", flags_.ring_megabytes));
  }

  /// What the numbers above do not cover.
  void print_changes() const {
    for (const usdt::FileChange& change : summary_.changed) say("  " + change_text(change));
    if (nothing_left_ && !child_) say("  nothing is left to trace");
  }

  /// A server's first process has often no hits itself: its children do the work.
  void hint_at_children() const {
    if (!flags_.pid || flags_.children || summary_.total().hits > 0) return;
    const std::vector<pid_t> children = usdt::descendants_of(*flags_.pid);
    if (children.empty()) return;
    constexpr std::size_t most = 5;
    const auto shown = std::min(children.size(), most);
    say(fmt::format("  process {} had no hits; it has {} ({}{}): --children traces them as well", *flags_.pid,
                    children.size() == 1 ? "a child" : fmt::format("{} descendants", children.size()),
                    fmt::join(children.begin(), children.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                    shown < children.size() ? ", ..." : ""));
  }

  /// Why there are fewer events than hits where that was asked for.
  [[nodiscard]] std::string limit_text(const Account& total) const {
    if (shown_ < flags_.max_events) return {};
    return fmt::format(" (the {} asked for; {} came before all was detached)", flags_.max_events,
                       fmt::format("{} more", total.discarded));
  }

  /// The probes that lost events, those that lost most.
  void print_losers() const {
    constexpr std::size_t most = 10;
    std::vector<std::pair<std::uint64_t, std::size_t>> losers;
    for (std::size_t i = 0; i < summary_.probes.size(); ++i) {
      std::uint64_t lost = summary_.probes[i].lost() + summary_.probes[i].missed.value_or(0);
      if (shown_ >= flags_.max_events) lost -= summary_.probes[i].discarded;  // as asked for
      if (lost > 0) losers.emplace_back(lost, i);
    }
    std::stable_sort(losers.begin(), losers.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (std::size_t n = 0; n < std::min(losers.size(), most); ++n) {
      const Account& probe = summary_.probes[losers[n].second];
      say(fmt::format("  {}: {}{}", full_name(plan_, plan_.probes[losers[n].second]),
                      flags_.count_only ? counted(probe.hits, "hit") : lost_text(probe), missed_text(probe)));
    }
    if (losers.size() > most) say(fmt::format("  and {}", counted(losers.size() - most, "more probe")));
  }

  [[nodiscard]] std::string lost_text(const Account& counts) const {
    std::string text = fmt::format("{} ring_full, {} discarded", counts.ring_full, counts.discarded);
    if (has_calls(plan_)) text += fmt::format(", {} calls_full, {} unfinished", counts.calls_full, counts.unfinished);
    if (counts.not_written > 0) text += fmt::format(", {} not_written", counts.not_written);
    return text;
  }

  [[nodiscard]] int exit_code() {
    if (output_failed()) return run_time_failure;
    const Account total = summary_.total();
    const bool lost = total.ring_full + total.calls_full + total.not_written > 0 || any_missed(missed_);
    const bool let_go = std::any_of(summary_.changed.begin(), summary_.changed.end(),
                                    [](const usdt::FileChange& change) { return change.let_go > 0; });
    if (flags_.strict && (lost || let_go || output_->unreadable() > 0)) return strict_failure;
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

  void notice(const std::string& text) const {
    if (!flags_.quiet) say(text);
  }

  static void say(const std::string& text) { usdt::tools::print_notice(text); }

  const Flags& flags_;
  Clock::time_point started_;
  std::filesystem::path program_;
  std::optional<ProcessWatch> watch_;
  std::optional<Child> child_;
  std::shared_ptr<usdt::AttachPlan> shared_plan_ = std::make_shared<usdt::AttachPlan>();
  usdt::AttachPlan& plan_ = *shared_plan_;
  std::optional<usdt::Tracer> tracer_;
  std::unique_ptr<usdt::tools::Stream> out_;
  std::unique_ptr<Output> output_;
  Summary summary_;
  std::vector<usdt::MissedHits> missed_;
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
