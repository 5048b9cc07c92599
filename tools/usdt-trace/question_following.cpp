// SPDX-License-Identifier: BSD-2-Clause
// What comes, changes and goes while a question waits or traces.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <set>
#include <utility>

#include "attached.hpp"
#include "notice.hpp"
#include "question.hpp"
#include "signals.hpp"
#include "usdt/moved_code.hpp"

namespace usdt_trace {
namespace {

/// What it costs is measured of one program.
usdt::Result<usdt::PlannedQuestion> not_taken() {
  return usdt::fail(usdt::ErrorKind::not_supported, "a trace with --max-overhead has what there was when it began");
}

}  // namespace

usdt::Result<void> Question::begin_waiting(const usdt::Error& nothing_yet) {
  notice(flags_, fmt::format("waiting: {}", nothing_yet.message));
  catch_signals();
  so_far_ = planner_->find_beginning();
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
  usdt::FoundPoints more = so_far_;
  planner_->add_file(event.file, more);
  if (more.lacks_something()) {
    notice(flags_, half_came_text(followed(event)));
    so_far_ = std::move(more);
    following_.done(event);
    return false;
  }
  auto planned = apart_from_output(planner_->plan_first(more));
  if (planned) {
    take(std::move(*planned));
    return true;
  }
  tell(followed_in_vain(event, planned.error()));
  following_.refused(event);
  return false;
}

usdt::Result<void> Question::begin_following(const std::vector<KnownFile>& known) {
  auto begun = following_.begin(run_.subjects(), run_.command(), known, [&run = run_] { run.arrival().wake(); });
  if (begun && flags_.output.verbose && following_.begun())
    notice(flags_, fmt::format("following by {}", following_.source()));
  return begun;
}

usdt::Result<void> Question::begin_following() {
  std::vector<KnownFile> known;
  for (const usdt::PlannedFile& file : plan_->files) known.emplace_back(file.target, file.elf);
  return begin_following(known);
}

/// It is offered again.
void Question::wait_again(const usdt::Error& changed) {
  notice(flags_, fmt::format("waiting on: {}", changed.message));
  following_.refused(*std::exchange(first_, std::nullopt));
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
  if (gone.empty()) return;
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
  auto more = flags_.question.limits.max_overhead > 0
                  ? not_taken()
                  : apart_from_output(planner_->plan_more(event.file, {tracer_->plan(), printed_}));
  const bool attached = more ? follow(event, std::move(*more)) : (tell(followed_in_vain(event, more.error())), false);
  attached ? following_.done(event) : following_.refused(event);
}

bool Question::follow(const usdt::FollowEvent& event, usdt::PlannedQuestion more) {
  const usdt::AttachPlan part = more.plan;
  more.plan.scope = plan_->scope;
  printed_.of_probe.insert(printed_.of_probe.end(), more.printed.of_probe.begin(), more.printed.of_probe.end());
  auto added = tracer_->add(std::move(more.plan));
  printed_.of_probe.resize(tracer_->plan().probes.size());
  has_grown();
  tell(added ? followed_and_attached(event, part, added->attached) : followed_in_vain(event, added.error()));
  shortened_told_ = report_shortened(flags_, *tracer_, shortened_told_);
  tell_if_others_pay();
  return added.has_value();
}

/// The tracer has another plan, whatever became of what was to be added or let go.
void Question::has_grown() {
  for (Sink& sink : sinks_) sink.output().trace(tracer_->plan(), tracer_->plan().probes.size());
  find_dump_on();
}

void Question::report_moved_code() {
  constexpr std::chrono::milliseconds first{200};
  constexpr std::chrono::minutes longest{1};
  if (!run_.command() || Clock::now() < next_moved_look_) return;
  if (next_moved_look_ != Clock::time_point()) {
    std::vector<pid_t> pids = usdt::descendants_of(*run_.command());
    pids.push_back(*run_.command());
    tell_moved_code(pids);
  }
  moved_pause_ = std::clamp<Clock::duration>(2 * moved_pause_, first, longest);
  next_moved_look_ = Clock::now() + moved_pause_;
}

void Question::report_moved_code_of_all() {
  const bool of_all = !run_.command() && usdt::pids_of(plan_->scope).empty();
  if (!of_all || plan_->files.empty()) return;
  std::vector<pid_t> pids;
  std::error_code ended;
  for (const auto& each : std::filesystem::directory_iterator("/proc", ended)) {
    const std::string name = each.path().filename();
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec == std::errc() && pid > 0) pids.push_back(pid);
  }
  tell_moved_code(pids);
}

void Question::tell_moved_code(const std::vector<pid_t>& pids) {
  constexpr std::size_t most = 3;
  for (std::string& each : usdt::moved_code(tracer_->plan(), pids)) {
    if (moved_told_.size() == most) return;
    if (const auto [text, fresh] = moved_told_.insert(std::move(each)); fresh) tell(*text);
  }
}

void Question::find_dump_on() {
  if (!flags_.question.recording.dump_on) return;
  if (auto filter = usdt::EventFilter::make(flags_.question.recording.dump_on, tracer_->plan()))
    dump_on_ = std::move(*filter);
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

}  // namespace usdt_trace
