// SPDX-License-Identifier: BSD-2-Clause
#include "question.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <stop_token>
#include <thread>
#include <utility>

#include "attached.hpp"
#include "common/report.hpp"
#include "common/thread.hpp"
#include "notice.hpp"
#include "output.hpp"
#include "rivals.hpp"
#include "signals.hpp"

namespace usdt_trace {
namespace {

constexpr std::string_view tool = "usdt-trace";

}  // namespace

/// What is recorded is shown only where that is asked for.
usdt::Result<void> Question::open(const Sink* shown) {
  if (flags_.dump_on_signal) catch_dump_signal();  // it may come before anything is traced
  if (!flags_.question.view.no_events())
    ring_ = std::make_shared<usdt::EventRing>(flags_.question.attaching.ring_megabytes << 20);
  if (flags_.question.recording.file.empty() || !flags_.output.file.empty()) {
    auto sink = shown ? usdt::Result<Sink>(shown->sibling()) : Sink::open(flags_.output.file);
    if (!sink) return usdt::fail(sink.error());
    sinks_.push_back(std::move(*sink));
  }
  if (!flags_.question.recording.file.empty()) {
    auto recorded = Sink::open(flags_.question.recording.file);
    if (!recorded) return usdt::fail(recorded.error());
    sinks_.push_back(std::move(*recorded));
  }
  return following_.open();
}

const Sink* Question::shown() const {
  return flags_.question.recording.file.empty() || !flags_.output.file.empty() ? &sinks_.front() : nullptr;
}

/// To people, and to those who read the recording.
void Question::tell(const std::string& text) {
  notice(flags_, text);
  if (recorder_ != nullptr) recorder_->notice({.text = text});
}

/// A file that is traced is not written to: who runs it would die of that.
usdt::Result<usdt::PlannedQuestion> Question::apart_from_output(usdt::Result<usdt::PlannedQuestion> planned) {
  say_notices(flags_, *planner_);
  for (std::size_t n = 0; planned && n < planned->plan.files.size(); ++n) {
    const usdt::PlannedFile& file = planned->plan.files[usdt::Index<usdt::PlannedFile>(static_cast<std::uint32_t>(n))];
    struct stat st {};
    if (file.elf == nullptr || ::fstat(file.elf->fd(), &st) != 0) continue;
    for (const Sink& sink : sinks_)
      if (sink.stream().file() == std::pair(st.st_dev, st.st_ino))
        return usdt::fail(usdt::ErrorKind::invalid_argument,
                          fmt::format("{} is the file {}, which is to be traced: nothing is written to it", sink.name(),
                                      file.target.path.native()));
  }
  return planned;
}

usdt::Result<bool> Question::plan() {
  if (!planner_) planner_.emplace(flags_.question, run_.subjects());
  auto planned = apart_from_output(planner_->plan());
  if (planned) {
    take(std::move(*planned));
    return true;
  }
  if (!flags_.question.following.wait || planned.error().kind != usdt::ErrorKind::not_found)
    return usdt::fail(planned.error());
  if (auto begun = begin_waiting(planned.error()); !begun) return usdt::fail(begun.error());
  return false;
}

void Question::take(usdt::PlannedQuestion planned) {
  plan_ = std::make_shared<usdt::AttachPlan>(std::move(planned.plan));
  printed_ = std::move(planned.printed);
}

usdt::TraceOptions Question::options() const {
  usdt::TraceOptions options;
  options.backend = flags_.question.attaching.backend;
  options.carrier = flags_.question.attaching.carrier;
  options.max_programs = flags_.question.attaching.max_programs;
  options.string_size = flags_.question.values.string_size;
  options.ring_bytes = flags_.question.attaching.ring_megabytes << 20;
  options.ring = ring_;
  options.kernel_stack_depth = flags_.question.stacks.kernel_depth;
  options.user_stack_depth = flags_.question.stacks.user_depth;
  options.user_stack_method = flags_.question.stacks.user_method;
  options.user_stack_bytes = flags_.question.stacks.user_kilobytes << 10;
  options.count_only = flags_.question.view.count_only;
  options.sample = flags_.question.limits.sample;
  options.max_rate = flags_.question.limits.max_rate;
  options.max_overhead = flags_.question.limits.max_overhead;
  options.max_additions = flags_.question.following.max_followed;
  options.slow_only = flags_.question.view.slowest > 0;
  options.wait_for_pages = flags_.question.attaching.wait_for_pages;
  options.descendants_only = run_.command() && flags_.question.following.follow;
  if (options.descendants_only) options.command = *run_.command();
  options.command_runs = run_.released();
  options.cgroups = run_.subjects().cgroups;
  options.leave_out_self = true;
  options.stop = run_.told_over();
  return options;
}

usdt::Result<void> Question::prepare_dump() {
  if (flags_.question.recording.dump_on) {
    auto filter = usdt::EventFilter::make(flags_.question.recording.dump_on, *plan_);
    if (!filter) return usdt::fail(filter.error().within("--dump-on"));
    dump_on_.emplace(std::move(*filter));
  }
  return {};
}

/// Where a kernel cannot tell whose children processes are, only the command's own process is traced.
usdt::Result<usdt::Tracer> Question::start(usdt::TraceOptions options) {
  auto tracer = usdt::Tracer::start(plan_, options);
  if (tracer || !options.descendants_only || tracer.error().kind != usdt::ErrorKind::not_supported) return tracer;
  const std::string why = tracer.error().message;
  options.descendants_only = false;
  plan_->scope = *usdt::OneProcess::of(*run_.command());
  tracer = usdt::Tracer::start(plan_, options);
  if (tracer) notice(flags_, fmt::format("only the command's own process is traced, not its children: {}", why));
  return tracer;
}

/// A build may be writing the file: what is traced is what it is in the end.
usdt::Result<bool> Question::attach() {
  constexpr std::chrono::seconds most{3};
  constexpr int some = 3;  // where one takes as long, as in an emulated guest
  const auto began = Clock::now();
  for (int tries = 1;; ++tries) {
    auto attached = attach_once();
    if (attached) return true;
    const usdt::Error& why = attached.error();
    if (why.kind != usdt::ErrorKind::changed) return usdt::fail(why);
    if (first_) {
      wait_again(why);
      return false;
    }
    if (run_.over() || (tries >= some && Clock::now() - began > most)) return usdt::fail(why);
    const timespec pause{.tv_sec = 0, .tv_nsec = 100'000'000};
    ::nanosleep(&pause, nullptr);  // a signal ends it
    auto planned = plan();
    if (!planned || !*planned) return planned;
  }
}

usdt::Result<void> Question::attach_once() {
  usdt::TraceOptions options = this->options();
  if (run_.command() && !flags_.question.following.follow) plan_->scope = *usdt::OneProcess::of(*run_.command());
  if (flags_.question.processes.children) {
    auto family = usdt::Processes::of(run_.subjects().pids);
    if (!family) return usdt::fail(family.error());
    options.family_of = std::move(*family);
  }
  if (auto prepared = prepare_dump(); !prepared) return prepared;
  catch_signals();
  auto tracer = start(std::move(options));
  if (!tracer) return usdt::fail(tracer.error());
  tracer_.emplace(std::move(*tracer));
  if (flags_.question.view.in_flight) tracer_->leave_out_faster(std::chrono::nanoseconds::max());
  begin_output();
  find_dump_on();  // of what is loaded, which may have fewer values
  return {};
}

/// Who waits for this may start what is to be traced: all is in place, and programs are held.
void Question::tell_attached() {
  const auto took = std::chrono::duration<double, std::milli>(Clock::now() - run_.started()).count();
  report_skipped(flags_, *tracer_);
  shortened_told_ = report_shortened(flags_, *tracer_, shortened_told_);
  const std::string carriers =
      flags_.output.verbose ? fmt::format(", specs by {}", tracer_->link().carrier_text()) : std::string();
  tell(fmt::format("attached {}{}, after {:.1f} ms", attached_text(flags_, *tracer_), carriers, took));
  tell_if_others_pay();
  flush();  // the heading, before what the command says
  if (first_) tell(followed_and_attached(*first_, *plan_, tracer_->link().attached()));
}

/// Once.
void Question::tell_if_others_pay() {
  const auto& why = tracer_->others_pay();
  if (!why || std::exchange(others_pay_told_, true)) return;
  tell(fmt::format("processes that are not traced have the breakpoints, too, and pay for each hit: {}", *why));
}

usdt::Result<std::size_t> Question::step(std::chrono::milliseconds wait) {
  auto events = take(wait);
  if (!events) return events;
  pause_while_recording(*events);
  if (auto shown = show_table_so_far(); !shown) return usdt::fail(shown.error());
  name_new_stacks();
  for (Sink& sink : sinks_)
    written_ &= sink.output().flush([this](std::chrono::milliseconds) { return !run_.over(); }) == Output::Flushed::all;
  if (!written_) return events;
  report_changes();
  report_given_up();
  report_moved_code();
  if (tracer_->find_cgroups()) tell("followed: a cgroup went, or came again");
  take_followed();
  if (recorder_ != nullptr && recorder_->account_due()) recorder_->account(summary());
  return events;
}

/// Nobody sees what is only recorded: it is taken in larger portions, since most of the work is to look so often. The
/// ring has room for far more than what comes meanwhile.
void Question::pause_while_recording(std::size_t events) const {
  constexpr std::size_t few = 2048, enough = 100'000;
  const std::size_t room =
      (std::size_t{flags_.question.attaching.ring_megabytes} << 20) / tracer_->layout().record_size();
  if (recorder_ == nullptr || sinks_.size() > 1 || events == 0 || events >= few || room < enough) return;
  const timespec pause{.tv_sec = 0, .tv_nsec = 10'000'000};
  ::nanosleep(&pause, nullptr);  // a signal ends it
}

/// Takes events out of the ring into the output.
usdt::Result<std::size_t> Question::take(std::chrono::milliseconds wait) {
  constexpr std::uint64_t batch = 4096;
  constexpr std::uint64_t much = 1 << 20;
  const auto show = [this](const usdt::Event& event) {
    around_->begin(event);
    if (flags_.question.view.slowest > 0) return keep_if_slow(event);
    if (dump_on_ && !dumped_ && (dumped_ = (*dump_on_)(event).value_or(false))) run_.end();
    for (Sink& sink : sinks_) {
      sink.output().event(event);
      if (sink.output().pending() > much)
        static_cast<void>(sink.output().flush([this](std::chrono::milliseconds) { return run_.patient(); }));
    }
  };
  const auto most = static_cast<std::size_t>(std::min(batch, flags_.question.limits.max_events - shown_));
  auto events = tracer_->poll(show, wait, most);
  if (events) shown_ += *events;
  name_stacks_of_slowest();
  return events;
}

/// Each file has a link of its own, and thousands of them take the kernel seconds. That is said once it has begun: a
/// second signal ends us then, and tasks of their own go on.
void Question::detach() {
  constexpr std::size_t many = 500;
  const std::size_t files = tracer_->plan().files.size();
  std::jthread teller;
  if (files >= many) {
    teller = usdt::tools::start_helper([this, files](const std::stop_token& done) {
      constexpr std::chrono::milliseconds moment{10};  // the end of a trace may wait for it so long
      for (int i = 0; i < 10 && !done.stop_requested(); ++i) std::this_thread::sleep_for(moment);
      if (!done.stop_requested())
        notice(flags_, fmt::format("detaching {} files, which takes the kernel a while", files));
    });
  }
  tracer_->detach();
}

void Question::finish() {
  report_changes();
  report_moved_code_of_all();
  find_in_flight();  // while it can be told who goes on
  detach();
  flush();
  while (shown_ < flags_.question.limits.max_events) {
    auto events = take(std::chrono::milliseconds(0));
    if (!events || *events == 0) break;
    flush();
  }
  tracer_->drain(nullptr);
  if (flags_.question.view.question || flags_.question.view.slowest > 0) {
    if (auto shown = show_table(true); !shown) usdt::tools::print_error(tool, shown.error());
  }
  if (recorder_ != nullptr) recorder_->dump(summary());
  flush();
  ledger_.emplace(flags_, tracer_->plan(),
                  Ledger::Facts{.summary = summary(),
                                .shown = shown_,
                                .followed = following_.begun(),
                                .nothing_left = nothing_left_ && !run_.command(),
                                .command_ended = run_.command_ended().has_value()});
  for (Sink& sink : sinks_)
    if (sink.is_written()) sink.output().summary(ledger_->summary());
  flush();
  ledger_->print();
  for (const std::string& line : hints_at_rivals(flags_, tracer_->plan(), ledger_->summary())) notice(flags_, line);
  for (const std::string& line : following_.account()) notice(flags_, line);
}

bool Question::failed() const {
  bool any = false;
  for (const Sink& sink : sinks_) any |= sink.failed();
  return any;
}

bool Question::has_losses() const {
  std::uint64_t unreadable = 0;
  for (const Sink& sink : sinks_) unreadable += sink.output().unreadable();
  return ledger_->has_losses() || unreadable > 0;
}

}  // namespace usdt_trace
