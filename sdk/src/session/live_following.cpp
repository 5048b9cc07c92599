// SPDX-License-Identifier: BSD-2-Clause
// Files that come and go while a question waits or traces.
#include <fmt/format.h>
#include <sys/stat.h>

#include <deque>
#include <iterator>
#include <set>
#include <utility>

#include "plan/changed_plan.hpp"
#include "session/live_question.hpp"
#include "session/notice_words.hpp"

namespace usdt::session {
namespace {

/// Refuses a file that came: a limit of overhead is measured on one program.
Result<PlannedQuestion> not_taken(const Question& question) {
  return fail(ErrorKind::not_supported,
              fmt::format("a trace with {}max-overhead has what there was when it began", question.option_prefix));
}

/// A device and the number of an inode there.
using Inode = std::pair<dev_t, ino_t>;

/// Returns those of a file, equal for all its names.
Inode inode_of(const ElfFile& elf) {
  struct stat st {};
  return ::fstat(elf.fd(), &st) == 0 ? Inode(st.st_dev, st.st_ino) : Inode();
}

/// Whether a file is reported that is not to be traced any more.
bool is_end(FollowKind kind) { return kind == FollowKind::gone || kind == FollowKind::unused; }

/// Returns the files that somebody was writing while they were attached: they are found again once they are at rest.
std::set<Index<PlannedFile>> left_out_as_changed(const Tracer& tracer) {
  std::set<Index<PlannedFile>> files;
  const AttachPlan& plan = tracer.plan();
  for (const SkippedSite& site : tracer.link().refused()) {
    const auto file = plan.probes[site.probe].file;
    if (file && plan.files[*file].elf != nullptr && !plan.files[*file].elf->is_unwritten()) files.insert(*file);
  }
  return files;
}

}  // namespace

void LiveQuestion::tell(const Followed& followed) {
  tell(NoticeKind::followed, followed_text(followed), followed.file);
  if (tracer_) consumer_.followed(followed);
}

Result<void> LiveQuestion::begin_waiting(const Error& nothing_yet) {
  tell(NoticeKind::waiting, fmt::format("waiting: {}", nothing_yet.message));
  run_.begin_holding();
  so_far_ = planner_->find_beginning();
  std::vector<KnownFile> known;
  for (const Selection* side : {&so_far_.selection, so_far_.ends ? &*so_far_.ends : nullptr})
    for (std::size_t n = 0; side != nullptr && n < side->files.size(); ++n)
      known.emplace_back(side->files[n].target, side->files[n].elf);
  return begin_following(known);
}

bool LiveQuestion::look() {
  std::deque<FollowEvent> events = std::exchange(rest_, {});
  std::ranges::move(following_.take(), std::back_inserter(events));
  for (FollowEvent& event : events) {
    if (first_ || is_end(event.kind))
      rest_.push_back(std::move(event));
    else if (is_first(event))
      first_ = std::move(event);
  }
  return first_.has_value();
}

/// Returns true if there is something to trace with this file; for spans, both sides.
bool LiveQuestion::is_first(const FollowEvent& event) {
  FoundPoints more = so_far_;
  planner_->add_file(event.file, more);
  if (more.lacks_something()) {
    tell(NoticeKind::waiting, half_came_text(session::followed(event)));
    so_far_ = std::move(more);
    following_.done(event);
    return false;
  }
  auto planned = checked(planner_->plan_first(more));
  if (planned) {
    keep(std::move(*planned));
    return true;
  }
  tell(followed_in_vain(event, planned.error()));
  following_.refused(event);
  return false;
}

Result<void> LiveQuestion::begin_following(const std::vector<KnownFile>& known) {
  auto begun = following_.begin(run_.subjects(), run_.command(), known, [&run = run_] { run.arrival().wake(); });
  if (begun && following_.begun()) tell(NoticeKind::following, fmt::format("following by {}", following_.source()));
  return begun;
}

Result<void> LiveQuestion::begin_following() {
  std::vector<KnownFile> known;
  const std::set<Index<PlannedFile>> left_out = left_out_as_changed(*tracer_);
  for (const Index<PlannedFile> number : plan_->files.indices()) {
    const PlannedFile& file = plan_->files[number];
    known.emplace_back(file.target, left_out.contains(number) ? nullptr : file.elf);
  }
  return begin_following(known);
}

/// It is offered again.
void LiveQuestion::wait_again(const Error& changed) {
  tell(NoticeKind::waiting, fmt::format("waiting on: {}", changed.message));
  following_.refused(*std::exchange(first_, std::nullopt));
}

/// Traces what came, for a while: what is left waits until events were taken, whose ring would be full else.
void LiveQuestion::take_followed() {
  constexpr std::chrono::milliseconds kLong(100);
  tell_crowded();
  if (first_) following_.done(*std::exchange(first_, std::nullopt));
  const auto end = std::chrono::steady_clock::now() + kLong;
  do {
    std::vector<FollowEvent> came = following_.take();
    std::ranges::move(came, std::back_inserter(rest_));
    if (!came.empty()) leave_out_gone();
    detach_gone();
    if (rest_.empty()) return;
    const FollowEvent next = std::move(rest_.front());
    rest_.pop_front();
    follow(next);
  } while (std::chrono::steady_clock::now() < end);
  if (!rest_.empty()) run_.arrival().wake();
}

/// Files that went before they could be attached are not attached any more: where the processors are busy, the work on
/// those would hold up that on others.
void LiveQuestion::leave_out_gone() {
  std::set<Inode> gone;
  std::deque<FollowEvent> left;
  for (auto event = rest_.rbegin(); event != rest_.rend(); ++event) {
    const bool goes = is_end(event->kind);
    if (goes && event->file.elf != nullptr) gone.insert(inode_of(*event->file.elf));
    if (goes || gone.empty() || !gone.contains(inode_of(*event->file.elf))) {
      left.push_front(std::move(*event));
      continue;
    }
    tell(followed_in_vain(*event, {ErrorKind::not_found, "it was gone before it could be attached"}));
    following_.done(*event);
  }
  rest_ = std::move(left);
}

/// One notice of all that are next, however many they are. A file that went may be found again behind that.
void LiveQuestion::detach_gone() {
  while (!rest_.empty() && is_end(rest_.front().kind)) {
    // The two sides of a span have opened the same file each for itself.
    std::set<Inode> wanted;
    const FollowKind kind = rest_.front().kind;
    for (; !rest_.empty() && rest_.front().kind == kind; rest_.pop_front())
      if (rest_.front().file.elf != nullptr) wanted.insert(inode_of(*rest_.front().file.elf));
    detach_files(wanted, kind);
  }
}

void LiveQuestion::detach_files(const std::set<std::pair<dev_t, ino_t>>& wanted, FollowKind kind) {
  if (wanted.empty()) return;
  const AttachPlan& plan = tracer_->plan();
  std::vector<Index<PlannedFile>> files;
  std::vector<std::string> names;
  for (const Index<PlannedFile> number : plan.files.indices()) {
    if (plan.files[number].elf == nullptr || !wanted.contains(inode_of(*plan.files[number].elf))) continue;
    files.push_back(number);
    names.push_back(plan.files[number].target.path.native());
  }
  if (files.empty()) return;
  const auto sites = tracer_->let_go(files);
  watch_->expect_again();
  has_grown();
  if (!sites) return tell(NoticeKind::released, sites.error().message);
  if (kind == FollowKind::gone) return tell(NoticeKind::released, let_go_text(names, *sites));
  // Who maps thousands of files has this go on for ever: it is said once, and the end of the trace says how many.
  if (!std::exchange(told_of_room_, true)) tell(NoticeKind::released, made_room_text(names, *sites));
}

/// Says once that files are left out for the sake of others; the end of the trace says how many.
void LiveQuestion::tell_crowded() {
  if (told_of_crowd_) return;
  const auto counts = following_.counts();
  if (!counts || counts->crowded == 0) return;
  told_of_crowd_ = true;
  tell(NoticeKind::followed, crowded_text(question_.following.max_followed, question_.option_prefix));
}

void LiveQuestion::follow(const FollowEvent& event) {
  auto more = question_.limits.max_overhead > 0 ? not_taken(question_)
                                                : checked(planner_->plan_more(event.file, {tracer_->plan(), printed_}));
  const auto attached = more ? follow(event, std::move(*more)) : Result<void>(fail(more.error()));
  if (attached) return following_.done(event);
  tell(followed_in_vain(event, attached.error()));
  following_.refused(event, attached.error().kind == ErrorKind::limit);
}

Result<void> LiveQuestion::follow(const FollowEvent& event, PlannedQuestion more) {
  const AttachPlan part = plan::with_scope(std::move(more.plan), plan_->scope);
  printed_.of_probe.insert(printed_.of_probe.end(), more.printed.of_probe.begin(), more.printed.of_probe.end());
  auto added = tracer_->add(part);
  printed_.of_probe.resize(tracer_->plan().probes.size());
  has_grown();
  if (added) tell(followed_and_attached(event, part, added->attached));
  watch_->tell_shortened();
  watch_->tell_others_pay();
  return added ? Result<void>() : fail(added.error());
}

/// Tells consumers of the tracer's new plan, whether its files were attached, detached or refused.
void LiveQuestion::has_grown() {
  consumer_.trace(tracer_->plan(), tracer_->plan().probes.size());
  static_cast<void>(find_dump_on(tracer_->plan()));
}

}  // namespace usdt::session
