// SPDX-License-Identifier: BSD-2-Clause
#include "question.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <set>
#include <utility>

#include "attached.hpp"
#include "common/report.hpp"
#include "notice.hpp"
#include "output.hpp"
#include "signals.hpp"

namespace usdt_trace {
namespace {

constexpr std::string_view tool = "usdt-trace";

std::int64_t wall_time() {
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// What it costs is measured of one program.
usdt::Result<PlannedTrace> not_taken() {
  return usdt::fail(usdt::ErrorKind::not_supported, "a trace with --max-overhead has what there was when it began");
}

usdt::Followed came(const usdt::FollowEvent& event) {
  usdt::Followed followed;
  followed.kind = event.kind;
  followed.pid = event.pid;
  followed.file = event.file.target.path.native();
  followed.time = event.time;
  const std::int64_t now = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();  // as that of events
  followed.wall_time = wall_time() - now + static_cast<std::int64_t>(event.time);
  return followed;
}
usdt::Followed refused(const usdt::FollowEvent& event, const usdt::Error& error) {
  usdt::Followed followed = came(event);
  followed.error = error.message;
  return followed;
}
usdt::Followed attached(const usdt::FollowEvent& event, const usdt::AttachPlan& part, std::size_t sites) {
  usdt::Followed followed = came(event);
  const auto now = Clock::now().time_since_epoch();  // CLOCK_MONOTONIC, as that of events
  const auto now_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
  followed.after_ns = now_ns - std::min(now_ns, event.time);
  followed.probes = static_cast<std::size_t>(
      std::ranges::count_if(part.probes, [](const usdt::PlannedProbe& probe) { return !probe.span; }));
  followed.sites = part.places();
  followed.attached = sites;
  return followed;
}

}  // namespace

/// What is recorded is shown only where that is asked for.
usdt::Result<void> Question::open(const Sink* shown) {
  if (flags_.dump_on_signal) catch_dump_signal();  // it may come before anything is traced
  if (flags_.record.empty() || !flags_.output.empty()) {
    auto sink = shown ? usdt::Result<Sink>(shown->sibling()) : Sink::open(flags_.output);
    if (!sink) return usdt::fail(sink.error());
    sinks_.push_back(std::move(*sink));
  }
  if (!flags_.record.empty()) {
    auto recorded = Sink::open(flags_.record);
    if (!recorded) return usdt::fail(recorded.error());
    sinks_.push_back(std::move(*recorded));
  }
  return following_.open();
}

const Sink* Question::shown() const {
  return flags_.record.empty() || !flags_.output.empty() ? &sinks_.front() : nullptr;
}

void Question::begin_output() {
  around_.emplace(flags_, flags_.debuginfod ? run_.told_over() : usdt::StopToken());
  if (!flags_.record.empty()) {
    auto recorder = make_recorder(*tracer_, printed_, flags_, *around_, sinks_.back().stream());
    recorder_ = recorder.get();
    sinks_.back().show_by(std::move(recorder));
  }
  if (flags_.record.empty() || !flags_.output.empty())
    sinks_.front().show_by(line_output(*plan_, printed_, flags_, *around_, sinks_.front().stream()));
}

/// To people, and to those who read the recording.
void Question::tell(const std::string& text) {
  notice(flags_, text);
  if (recorder_ != nullptr) recorder_->notice(text);
}

/// A file that is traced is not written to: who runs it would die of that.
usdt::Result<PlannedTrace> Question::apart_from_output(usdt::Result<PlannedTrace> planned) const {
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
  auto planned = apart_from_output(plan_trace(flags_, run_.subjects()));
  if (planned) {
    take(std::move(*planned));
    return true;
  }
  if (!flags_.wait || planned.error().kind != usdt::ErrorKind::not_found) return usdt::fail(planned.error());
  if (auto begun = begin_waiting(planned.error()); !begun) return usdt::fail(begun.error());
  return false;
}

void Question::take(PlannedTrace planned) {
  plan_ = std::make_shared<usdt::AttachPlan>(std::move(planned.plan));
  printed_ = std::move(planned.printed);
}

usdt::Result<void> Question::begin_waiting(const usdt::Error& nothing_yet) {
  notice(flags_, fmt::format("waiting: {}", nothing_yet.message));
  catch_signals();
  so_far_ = find_beginning(flags_, run_.subjects());
  std::vector<KnownFile> known;
  for (const usdt::Selection* side : {&so_far_.selection, so_far_.ends ? &*so_far_.ends : nullptr})
    for (std::size_t n = 0; side != nullptr && n < side->files.size(); ++n)
      known.emplace_back(side->files[n].target, side->files[n].elf);
  return begin_following(known);
}

usdt::Result<bool> Question::look() {
  std::vector<usdt::FollowEvent> events = std::exchange(rest_, {});
  std::ranges::move(following_.take(), std::back_inserter(events));
  for (usdt::FollowEvent& event : events) {
    if (first_ || event.kind == usdt::FollowKind::gone)
      rest_.push_back(std::move(event));
    else if (is_first(event))
      first_ = std::move(event);
  }
  return first_.has_value();
}

/// With what it has there is something to trace; of spans, both sides.
bool Question::is_first(const usdt::FollowEvent& event) {
  FoundTrace more = so_far_;
  add_file(flags_, event.file, more);
  if (more.lacks_something()) {
    notice(flags_, half_came_text(came(event)));
    so_far_ = std::move(more);
    following_.done(event);
    return false;
  }
  auto planned = apart_from_output(plan_first(flags_, run_.subjects(), more));
  if (planned) {
    take(std::move(*planned));
    return true;
  }
  tell(refused(event, planned.error()));
  following_.refused(event);
  return false;
}

usdt::Result<void> Question::begin_following(const std::vector<KnownFile>& known) {
  auto begun = following_.begin(run_.subjects(), run_.command(), known, [&run = run_] { run.arrival().wake(); });
  if (begun && flags_.verbose && following_.begun())
    notice(flags_, fmt::format("following by {}", following_.source()));
  return begun;
}

usdt::Result<void> Question::begin_following() {
  std::vector<KnownFile> known;
  for (const usdt::PlannedFile& file : plan_->files) known.emplace_back(file.target, file.elf);
  return begin_following(known);
}

usdt::TraceOptions Question::options() const {
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
  options.sample = flags_.sample;
  options.max_rate = flags_.max_rate;
  options.max_overhead = flags_.max_overhead;
  options.max_additions = flags_.max_followed;
  options.slow_only = flags_.view.slowest > 0;
  options.wait_for_pages = flags_.wait_for_pages;
  options.descendants_only = run_.command() && flags_.follow;
  options.cgroups = run_.subjects().cgroups;
  return options;
}

usdt::Result<void> Question::prepare_dump() {
  if (flags_.dump_on) {
    auto filter = usdt::EventFilter::make(flags_.dump_on, *plan_);
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

/// It is offered again.
void Question::wait_again(const usdt::Error& changed) {
  notice(flags_, fmt::format("waiting on: {}", changed.message));
  following_.refused(*std::exchange(first_, std::nullopt));
}

usdt::Result<void> Question::attach_once() {
  usdt::TraceOptions options = this->options();
  if (run_.command() && !flags_.follow) plan_->scope = *usdt::OneProcess::of(*run_.command());
  if (flags_.children) {
    auto family = usdt::Processes::of(run_.subjects().pids);
    if (!family) return usdt::fail(family.error());
    options.family_of = std::move(*family);
  }
  if (auto prepared = prepare_dump(); !prepared) return prepared;
  catch_signals();
  auto tracer = start(std::move(options));
  if (!tracer) return usdt::fail(tracer.error());
  tracer_.emplace(std::move(*tracer));
  begin_output();
  return {};
}

/// Who waits for this may start what is to be traced: all is in place, and programs are held.
void Question::tell_attached() {
  const auto took = std::chrono::duration<double, std::milli>(Clock::now() - run_.started()).count();
  report_skipped(flags_, *tracer_);
  const std::string carriers =
      flags_.verbose ? fmt::format(", specs by {}", tracer_->link().carrier_text()) : std::string();
  tell(fmt::format("attached {}{}, after {:.1f} ms", attached_text(flags_, *tracer_), carriers, took));
  flush();  // the heading, before what the command says
  if (first_) tell(attached(*first_, *plan_, tracer_->link().attached()));
}

/// Traces what came.
void Question::take_followed() {
  if (first_) following_.done(*std::exchange(first_, std::nullopt));
  take_in_order(std::exchange(rest_, {}));
  take_in_order(following_.take());
}

/// A file that was let go may be found again behind that.
void Question::take_in_order(std::vector<usdt::FollowEvent> events) {
  std::vector<usdt::FollowEvent> gone;
  for (usdt::FollowEvent& event : events) {
    if (event.kind == usdt::FollowKind::gone) {
      gone.push_back(std::move(event));
      continue;
    }
    let_go(std::exchange(gone, {}));
    follow(event);
  }
  let_go(gone);
}

/// One notice of all, however many they are.
void Question::let_go(const std::vector<usdt::FollowEvent>& gone) {
  // The two sides of a span have opened the same file each for itself.
  const auto inode_of = [](const usdt::ElfFile& elf) {
    struct stat st {};
    return ::fstat(elf.fd(), &st) == 0 ? std::pair(st.st_dev, st.st_ino) : std::pair<dev_t, ino_t>();
  };
  std::set<std::pair<dev_t, ino_t>> wanted;
  for (const usdt::FollowEvent& event : gone)
    if (event.file.elf != nullptr) wanted.insert(inode_of(*event.file.elf));
  const usdt::AttachPlan& plan = tracer_->plan();
  std::vector<usdt::Index<usdt::PlannedFile>> files;
  std::vector<std::string> names;
  for (const usdt::Index<usdt::PlannedFile> number : plan.files.indices()) {
    if (plan.files[number].elf == nullptr || !wanted.contains(inode_of(*plan.files[number].elf))) continue;
    files.push_back(number);
    names.push_back(plan.files[number].target.path.native());
  }
  if (files.empty()) return;
  const auto sites = tracer_->let_go(files);
  may_come_again_ = true;
  has_grown();
  tell(sites ? let_go_text(names, *sites) : sites.error().message);
}

void Question::follow(const usdt::FollowEvent& event) {
  auto more = flags_.max_overhead > 0
                  ? not_taken()
                  : apart_from_output(plan_more(flags_, run_.subjects(), event.file, {tracer_->plan(), printed_}));
  const bool attached = more ? follow(event, std::move(*more)) : (tell(refused(event, more.error())), false);
  attached ? following_.done(event) : following_.refused(event);
}

bool Question::follow(const usdt::FollowEvent& event, PlannedTrace more) {
  const usdt::AttachPlan part = more.plan;
  more.plan.scope = plan_->scope;
  printed_.of_probe.insert(printed_.of_probe.end(), more.printed.of_probe.begin(), more.printed.of_probe.end());
  auto added = tracer_->add(std::move(more.plan));
  printed_.of_probe.resize(tracer_->plan().probes.size());
  has_grown();
  tell(added ? attached(event, part, added->attached) : refused(event, added.error()));
  return added.has_value();
}

/// The tracer has another plan, whatever became of what was to be added or let go.
void Question::has_grown() {
  for (Sink& sink : sinks_) sink.output().trace(tracer_->plan());
  if (!flags_.dump_on) return;
  if (auto filter = usdt::EventFilter::make(flags_.dump_on, tracer_->plan())) dump_on_ = std::move(*filter);
}

void Question::tell(const usdt::Followed& followed) {
  tell(followed_text(followed));
  for (Sink& sink : sinks_)
    if (tracer_) sink.output().followed(followed);
}

void Question::report_changes() {
  const auto changes = tracer_->link().changes();
  for (; changes_told_ < changes.size(); ++changes_told_)
    tell(change_text(tracer_->plan(), changes[changes_told_], following_.begun()));
  nothing_left_ = changes_told_ > 0 && tracer_->link().attached() == 0 && !may_come_again_;
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
  if (tracer_->find_cgroups()) tell("followed: a cgroup went, or came again");
  take_followed();
  if (recorder_ != nullptr && recorder_->account_due()) recorder_->account(summary());
  return events;
}

/// With --interval, when it is time; where some were missed, the next one is not late for them.
usdt::Result<void> Question::show_table_so_far() {
  const auto now = Clock::now();
  if (!flags_.view.interval || now < next_table_) return {};
  const auto interval =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*flags_.view.interval));
  const bool first = next_table_ == Clock::time_point();
  next_table_ = first || now - next_table_ > interval ? now + interval : next_table_ + interval;
  if (first) slicer_ = HeatSlicer(wall_time());
  return first ? usdt::Result<void>() : show_table(false);
}

void Question::name_new_stacks() {
  constexpr int pause_of_work = 10;
  if (!flags_.view.has_stacks() || Clock::now() < next_naming_ || !tracer_->table_grew()) return;
  const auto began = Clock::now();
  if (auto rows = tracer_->table()) around_->name(*rows, tracer_->plan());
  next_naming_ = Clock::now() + pause_of_work * (Clock::now() - began);
}

usdt::Result<void> Question::show_table(bool last) {
  if (flags_.view.slowest > 0) {
    for (Sink& sink : sinks_)
      if (sink.is_written()) sink.output().slowest(slowest_);
    return {};
  }
  auto rows = tracer_->table();
  if (!rows) return usdt::fail(rows.error());
  if (flags_.view.has_stacks()) around_->name(*rows, tracer_->plan());
  if (flags_.view.heat_map) {
    const HeatSlice slice = slicer_.cut(*plan_->table, *rows, wall_time());
    for (Sink& sink : sinks_)
      if (sink.is_written()) sink.output().heat(slice, last);
    return {};
  }
  for (Sink& sink : sinks_)
    if (sink.is_written()) sink.output().table(*plan_->table, *rows, tracer_->overhead());
  return {};
}

/// Nobody sees what is only recorded: it is taken in larger portions, since most of the work is to look so often. The
/// ring has room for far more than what comes meanwhile.
void Question::pause_while_recording(std::size_t events) const {
  constexpr std::size_t few = 2048, enough = 100'000;
  const std::size_t room = (std::size_t{flags_.ring_megabytes} << 20) / tracer_->layout().record_size();
  if (recorder_ == nullptr || sinks_.size() > 1 || events == 0 || events >= few || room < enough) return;
  const timespec pause{.tv_sec = 0, .tv_nsec = 10'000'000};
  ::nanosleep(&pause, nullptr);  // a signal ends it
}

/// What is kept decides what the kernel leaves out from now on: stacks, which take a while, are for later.
void Question::keep_if_slow(const usdt::Event& event) {
  if (slowest_.add(event, around_->wall_offset())) tracer_->leave_out_faster(slowest_.least());
}

/// While their processes live.
void Question::name_stacks_of_slowest() {
  if (flags_.kernel_stack_depth + flags_.user_stack_depth == 0) return;
  for (usdt::KeptEvent& kept : slowest_.events()) {
    if (kept.kernel_stack || kept.user_stack) continue;
    around_->begin(*kept.event);
    const usdt::EventStacks stacks = around_->stacks(flags_, *kept.event);
    if (stacks.kernel) kept.kernel_stack = *stacks.kernel;
    if (stacks.user) kept.user_stack = *stacks.user;
  }
}

/// Takes events out of the ring into the output.
usdt::Result<std::size_t> Question::take(std::chrono::milliseconds wait) {
  constexpr std::uint64_t batch = 4096;
  constexpr std::uint64_t much = 1 << 20;
  const auto show = [this](const usdt::Event& event) {
    around_->begin(event);
    if (flags_.view.slowest > 0) return keep_if_slow(event);
    if (dump_on_ && !dumped_ && (dumped_ = (*dump_on_)(event).value_or(false))) run_.end();
    for (Sink& sink : sinks_) {
      sink.output().event(event);
      if (sink.output().pending() > much)
        static_cast<void>(sink.output().flush([this](std::chrono::milliseconds) { return run_.patient(); }));
    }
  };
  const auto most = static_cast<std::size_t>(std::min(batch, flags_.max_events - shown_));
  auto events = tracer_->poll(show, wait, most);
  if (events) shown_ += *events;
  name_stacks_of_slowest();
  return events;
}

void Question::finish() {
  report_changes();
  tracer_->detach();
  flush();
  while (shown_ < flags_.max_events) {
    auto events = take(std::chrono::milliseconds(0));
    if (!events || *events == 0) break;
    flush();
  }
  tracer_->drain(nullptr);
  if (flags_.view.question || flags_.view.slowest > 0) {
    if (auto shown = show_table(true); !shown) usdt::tools::print_error(tool, shown.error());
  }
  if (recorder_ != nullptr) recorder_->dump(summary());
  flush();
  ledger_.emplace(flags_, tracer_->plan(),
                  Ledger::Facts{.summary = summary(),
                                .shown = shown_,
                                .followed = following_.begun(),
                                .nothing_left = nothing_left_ && !run_.command()});
  for (Sink& sink : sinks_)
    if (sink.is_written()) sink.output().summary(ledger_->summary());
  flush();
  ledger_->print();
  if (const std::string account = following_.account(); !account.empty()) notice(flags_, account);
}

void Question::finish_waiting() {
  notice(flags_, "nothing came that matches");
  if (const std::string account = following_.account(); !account.empty()) notice(flags_, account);
  // Who reads it gets the account of a trace that saw nothing; of a script, that of the others.
  if (flags_.format != Format::json || shown() == nullptr || !flags_.question.empty()) return;
  const usdt::AttachPlan nothing;
  LiveSurroundings around(flags_);
  Sink sink = sinks_.front().sibling();
  sink.show_by(line_output(nothing, printed_, flags_, around, sink.stream()));
  sink.output().summary({.probes = {}, .skipped = {}, .missed = 0, .changed = {}});
  sink.flush([this](std::chrono::milliseconds) { return run_.patient(); });
}

void Question::flush() {
  for (Sink& sink : sinks_) sink.flush([this](std::chrono::milliseconds) { return run_.patient(); });
}

Summary Question::summary() const {
  return {.probes = accounts(),
          .skipped = skipped_sites(*tracer_),
          .missed = tracer_->missed(),
          .changed = tracer_->link().changes(),
          .missed_hits = tracer_->missed_hits(),
          .undecided = tracer_->undecided(),
          .overhead = tracer_->overhead()};
}

/// What the tracer counted, less what was not written everywhere.
std::vector<Account> Question::accounts() const {
  std::vector<Account> all;
  const usdt::AttachPlan& plan = tracer_->plan();
  const auto forgotten = recorder_ != nullptr ? by_account(plan, recorder_->forgotten()) : std::vector<std::uint64_t>();
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
