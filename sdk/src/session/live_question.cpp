// SPDX-License-Identifier: BSD-2-Clause
#include "session/live_question.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/try.hpp"
#include "plan/changed_plan.hpp"
#include "session/begun_expressions.hpp"
#include "session/notice_words.hpp"
#include "session/option_names.hpp"

namespace usdt::session {

Result<void> LiveQuestion::open() {
  if ((!question_.view.no_events() || question_.view.of_events) && !run_.broker())
    ring_ = std::make_shared<EventRing>(question_.attaching.ring_megabytes << 20);
  return following_.open();
}

void LiveQuestion::tell(NoticeKind kind, std::string text, std::string subject) {
  consumer_.notice({kind, std::move(subject), std::move(text)});
}

Result<PlannedQuestion> LiveQuestion::checked(Result<PlannedQuestion> planned) {
  for (const SessionNotice& each : planner_->take_notices()) consumer_.notice(each);
  if (!planned) return planned;
  TRY(consumer_.check(planned->plan));
  return planned;
}

/// What no service attaches is said before the kernel is asked what it could do.
Result<void> LiveQuestion::check_broker() const {
  const auto of_kernel = [](const PointPattern& each) { return std::holds_alternative<KernelPattern>(each); };
  if (!run_.broker() || std::ranges::none_of(all_patterns(question_), of_kernel)) return {};
  return fail(ErrorKind::not_supported,
              "usdt-broker attaches to your own processes: functions and tracepoints of the kernel, which are "
              "everybody's, take privileges");
}

Result<bool> LiveQuestion::plan() {
  TRY(check_broker());
  if (!planner_) planner_.emplace(question_, run_.subjects());
  auto planned = checked(planner_->plan());
  if (planned) {
    keep(std::move(*planned));
    return true;
  }
  if (!question_.following.wait || planned.error().kind != ErrorKind::not_found) return fail(planned.error());
  TRY(begin_waiting(planned.error()));
  return false;
}

std::shared_ptr<const AttachPlan> LiveQuestion::of_command_alone(AttachPlan plan) const {
  return std::make_shared<const AttachPlan>(plan::with_scope(std::move(plan), *OneProcess::of(*run_.command())));
}

void LiveQuestion::keep(PlannedQuestion planned) {
  plan_ = run_.command() && !question_.following.follow ? of_command_alone(std::move(planned.plan))
                                                        : std::make_shared<const AttachPlan>(std::move(planned.plan));
  printed_ = std::move(planned.printed);
}

TraceOptions LiveQuestion::options() const {
  TraceOptions options;
  options.backend = question_.attaching.backend;
  options.carrier = question_.attaching.carrier;
  options.max_programs = question_.attaching.max_programs;
  options.string_size = question_.values.string_size;
  options.ring_bytes = question_.attaching.ring_megabytes << 20;
  options.ring = ring_;
  options.kernel_stack_depth = question_.stacks.kernel_depth;
  options.user_stack_depth = question_.stacks.user_depth;
  options.user_stack_method = question_.stacks.user_method;
  options.user_stack_bytes = question_.stacks.user_kilobytes << 10;
  options.count_only = question_.view.count_only;
  options.sample = question_.limits.sample;
  options.max_rate = question_.limits.max_rate;
  options.max_overhead = question_.limits.max_overhead;
  options.max_additions = question_.following.max_followed;
  options.slow_only = question_.view.slowest > 0 || question_.view.in_flight;
  options.wait_for_pages = question_.attaching.wait_for_pages;
  options.descendants_only = run_.command() && question_.following.follow;
  if (options.descendants_only) options.command = *run_.command();
  options.command_runs = run_.released();
  if (question_.view.in_flight) options.ends_with = run_.last_process();
  options.cgroups = run_.subjects().cgroups;
  options.leave_out_self = true;
  options.broker = run_.broker();
  options.stop = run_.told_over();
  return options;
}

Result<void> LiveQuestion::find_dump_on(const AttachPlan& plan) {
  if (!question_.recording.dump_on) return {};
  auto filter = EventFilter::make(question_.recording.dump_on, plan);
  if (!filter) return fail(filter.error().within(name_options("--dump-on", question_.option_prefix)));
  dump_on_ = std::move(*filter);
  return {};
}

/// Starts the tracer; only for the command's own process, if the kernel cannot tell whose children processes are.
Result<Tracer> LiveQuestion::start(TraceOptions options) {
  auto tracer = Tracer::start(plan_, options);
  if (tracer || !options.descendants_only || tracer.error().kind != ErrorKind::not_supported) return tracer;
  const std::string why = tracer.error().message;
  options.descendants_only = false;
  plan_ = of_command_alone(*plan_);
  tracer = Tracer::start(plan_, options);
  if (tracer)
    tell(NoticeKind::scope, fmt::format("only the command's own process is traced, not its children: {}", why));
  return tracer;
}

/// Attaches, again and again while files change: a build may be writing one, and its last state is traced. What
/// somebody goes on writing is then left out, unless there is nothing else: all others are not to wait for that.
Result<bool> LiveQuestion::attach() {
  constexpr std::chrono::seconds most{3};
  constexpr int some = 3;  // where one takes as long, as in an emulated guest
  const auto began = Clock::now();
  for (int tries = 1;; ++tries) {
    const bool is_last = tries > some && Clock::now() - began > most;
    auto attached = attach_once(is_last);
    if (attached) return true;
    const Error& why = attached.error();
    if (why.kind != ErrorKind::changed) return fail(why);
    if (first_) {
      wait_again(why);
      return false;
    }
    if (is_last || run_.over()) return fail(why);
    const timespec pause{.tv_sec = 0, .tv_nsec = 100'000'000};
    ::nanosleep(&pause, nullptr);  // a signal ends it
    auto planned = plan();
    if (!planned || !*planned) return planned;
  }
}

Result<void> LiveQuestion::attach_once(bool leave_out_changed) {
  TraceOptions options = this->options();
  options.leave_out_changed = leave_out_changed;
  if (question_.processes.children) {
    auto family = TRY(Processes::of(run_.subjects().pids));
    options.family_of = std::move(family);
  }
  TRY(find_dump_on(*plan_));
  run_.begin_holding();
  auto tracer = TRY(start(std::move(options)));
  tracer_.emplace(std::move(tracer));
  if (question_.view.in_flight) tracer_->leave_out_faster(std::chrono::nanoseconds::max());
  begin_answers();
  TRY(view_->begin_rows());
  filter_ = TRY(LiveFilter::make(question_, *tracer_));
  // The loaded plan may have fewer values: the condition is asked about it from now on.
  static_cast<void>(find_dump_on(tracer_->plan()));
  return {};
}

void LiveQuestion::begin_answers() {
  // What is in flight began after all was attached, which takes a second on a busy machine.
  if (question_.view.in_flight) {
    begin_question(question_, event_clock());
    for (PrintList& list : printed_.lists) session::begin_list(list, question_.began);
  }
  around_.emplace(question_, question_.points.debuginfod ? run_.told_over() : StopToken());
  view_.emplace(question_, plan_->table ? &*plan_->table : nullptr, *tracer_, *around_, consumer_);
  watch_.emplace(run_, *plan_, *tracer_, consumer_);
  consumer_.begin({.question = question_,
                   .plan = tracer_->plan(),
                   .layout = &tracer_->layout(),
                   .printed = printed_,
                   .around = *around_});
}

/// Says that all is attached and programs are held: whoever waits for this may start the programs to trace.
void LiveQuestion::tell_attached() {
  const auto took = std::chrono::duration<double, std::milli>(Clock::now() - run_.started()).count();
  const std::vector<SkippedSite> skipped = skipped_sites(*tracer_);
  if (!skipped.empty() && (question_.where != nullptr || question_.view.question != nullptr))
    consumer_.notice(notice_of_all(tracer_->plan(), skipped));
  for (const SessionNotice& each : notices_of_reasons(tracer_->plan(), skipped, NoticeKind::left_out, "not attached"))
    consumer_.notice(each);
  watch_->tell_shortened();
  const auto text = [&](bool verbose) {
    return fmt::format("attached {}{}, after {:.1f} ms", attached_text(*tracer_, verbose),
                       verbose ? fmt::format(", specs by {}", tracer_->link().carrier_text()) : std::string(), took);
  };
  consumer_.notice({.kind = NoticeKind::attached, .text = text(false), .detail = text(true)});
  watch_->tell_others_pay();
  if (tracer_->link().started())
    tell(NoticeKind::scope,
         "what these processes start is found, and attached, some milliseconds after it began: hits before that are in "
         "no count");
  consumer_.flush_rest();  // the heading, before what the command says
  if (first_) tell(followed_and_attached(*first_, *plan_, tracer_->link().attached()));
}

Result<std::size_t> LiveQuestion::step(std::chrono::milliseconds wait) {
  auto events = take(look_at_command(wait));
  if (!events) return events;
  pause_while_nobody_looks(*events);
  TRY(view_->show_when_due());
  TRY(view_->show_when_wanted());
  view_->name_new_stacks();
  handed_on_ = consumer_.flush();
  if (!handed_on_) return events;
  watch_->tell_changes(following_.begun());
  watch_->tell_unknown_interpreters();
  watch_->tell_given_up();
  watch_->tell_moved_code();
  watch_->tell_cgroups();
  take_followed();
  if (consumer_.wants_account()) consumer_.account(summary());
  return events;
}

/// The command may end right after its first event, and the names of its scripts with it: what leads to them is found
/// before. Returns how long events may be waited for, at most `wait`, until it is looked at again.
std::chrono::milliseconds LiveQuestion::look_at_command(std::chrono::milliseconds wait) {
  if (!run_.command() || question_.stacks.user_depth == 0) return wait;
  if (expected_.is_due()) around_->expect(*run_.command());
  return expected_.until_due(wait);
}

/// Larger portions are less work, most of which is to look so often. The ring has room for far more than what comes
/// meanwhile.
void LiveQuestion::pause_while_nobody_looks(std::size_t events) const {
  constexpr std::size_t few = 2048, enough = 100'000;
  const std::size_t room = (std::size_t{question_.attaching.ring_megabytes} << 20) / tracer_->layout().record_size();
  if (events == 0 || events >= few || room < enough || !consumer_.in_no_hurry()) return;
  const timespec pause{.tv_sec = 0, .tv_nsec = 10'000'000};
  ::nanosleep(&pause, nullptr);  // a signal ends it
}

/// Takes events out of the ring.
Result<std::size_t> LiveQuestion::take(std::chrono::milliseconds wait) {
  constexpr std::uint64_t batch = 4096;
  std::size_t passed = 0;
  const auto give = [&](const Event& event) {
    if (filter_ && !filter_->passes(event)) return;
    ++passed;
    around_->begin(event);
    if (question_.view.in_flight) return;  // it has ended
    if (question_.view.of_events) return view_->add(event);
    if (question_.view.slowest > 0) return view_->keep_if_slow(event);
    if (dump_on_ && !dumped_ && (dumped_ = (*dump_on_)(event).value_or(false))) run_.end();
    hand_over(event);
  };
  const auto most = static_cast<std::size_t>(std::min(batch, question_.limits.max_events - given_));
  auto events = tracer_->poll(give, wait, most);
  given_ += passed;
  if (!kept_.empty() && Clock::now() >= *kept_until_) hand_over_kept();
  view_->name_stacks_of_slowest();
  return events;
}

/// Whether an event waits until others have come. The first stack takes a hundred milliseconds to name, since files are
/// read, and a script ends meanwhile: the names of its functions are read of each event first.
bool LiveQuestion::is_to_be_kept(const Event& event) {
  constexpr std::chrono::milliseconds longest{300};
  constexpr std::size_t most = 512;
  if (!kept_until_ && question_.stacks.user_depth > 0 && !event.script().frames.empty())
    kept_until_ = Clock::now() + longest;
  return kept_until_ && kept_.size() < most && Clock::now() < *kept_until_;
}

void LiveQuestion::hand_over(const Event& event) {
  if (is_to_be_kept(event)) {
    around_->see(event);
    kept_.emplace_back(event);
    return;
  }
  if (!kept_.empty()) {
    hand_over_kept();
    around_->begin(event);
  }
  consumer_.event(event);
}

void LiveQuestion::hand_over_kept() {
  for (const OwnedEvent& each : std::exchange(kept_, {})) {
    around_->begin(*each);
    consumer_.event(*each);
  }
}

/// Each file has a link of its own, and thousands of them take the kernel seconds. This is said before: a second signal
/// ends us then, and separate tasks go on.
void LiveQuestion::detach() {
  constexpr std::size_t many = 500;
  const std::size_t files = tracer_->plan().files.size();
  if (files >= many)
    tell(NoticeKind::detaching, fmt::format("detaching {} files, which takes the kernel a while", files));
  tracer_->detach();
}

Result<void> LiveQuestion::finish() {
  finished_ = true;
  watch_->tell_changes(following_.begun());
  watch_->tell_moved_code_of_all();
  const auto found = view_->find_in_flight();  // while it can be told who goes on
  detach();
  consumer_.flush_rest();
  while (given_ < question_.limits.max_events) {
    auto events = take(std::chrono::milliseconds(0));
    if (!events || *events == 0) break;
    consumer_.flush_rest();
  }
  hand_over_kept();
  consumer_.flush_rest();
  if (filter_)
    tracer_->drain([this](const Event& event) { filter_->discard(event); });
  else
    tracer_->drain(nullptr);
  watch_->tell_unknown_interpreters();
  const bool has_view = question_.view.question || question_.view.slowest > 0;
  auto shown = has_view && found ? view_->show_last() : found;
  consumer_.ending(summary());
  consumer_.flush_rest();
  const SessionSummary account = summary();
  consumer_.summary(account);
  consumer_.flush_rest();
  consumer_.end({.plan = tracer_->plan(),
                 .summary = account,
                 .given = given_,
                 .follows = following_.begun(),
                 .nothing_left = nothing_left()});
  if (const auto counts = following_.counts())
    for (const std::string& line : lines_of(*counts)) tell(NoticeKind::ended, line);
  return shown;
}

void LiveQuestion::finish_without_trace(std::string_view why) {
  finished_ = true;
  tell(NoticeKind::ended, std::string(why));
  if (const auto counts = following_.counts())
    for (const std::string& line : lines_of(*counts)) tell(NoticeKind::ended, line);
  consumer_.end_untraced(question_);
}

/// Takes what was not written everywhere out of what the tracer counted.
SessionSummary LiveQuestion::summary() {
  SessionSummary summary = summarize(*tracer_);
  const auto forgotten = by_account(tracer_->plan(), consumer_.forgotten());
  const auto not_written = by_account(tracer_->plan(), consumer_.not_written());
  const auto folded_full = by_account(tracer_->plan(), consumer_.folded_full());
  for (std::size_t n = 0; n < summary.probes.size(); ++n) {
    Account& account = summary.probes[n];
    if (n < not_written.size()) account.not_written = not_written[n];
    if (n < folded_full.size()) account.folded_full = folded_full[n];
    if (n < forgotten.size()) {
      account.delivered -= forgotten[n];
      account.discarded += forgotten[n];
    }
    account.delivered -= account.not_written + account.folded_full;
    if (view_) view_->account_for(Index<PlannedProbe>(static_cast<std::uint32_t>(n)), account);
    if (filter_) filter_->account_for(Index<PlannedProbe>(static_cast<std::uint32_t>(n)), account);
  }
  return summary;
}

}  // namespace usdt::session
