// SPDX-License-Identifier: BSD-2-Clause
#include "session/trace_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "session/notice_words.hpp"
#include "usdt/moved_code.hpp"
#include "usdt/probe_file.hpp"
#include "usdt/question_plan.hpp"
#include "usdt/shortened.hpp"

namespace usdt::session {

void TraceWatch::tell_changes(bool follows) {
  const auto changes = tracer_.link().changes();
  for (; changes_told_ < changes.size(); ++changes_told_) {
    const FileChange& change = changes[changes_told_];
    told_.notice({NoticeKind::changed, tracer_.plan().files[change.file].target.path.native(),
                  change_text(tracer_.plan(), change, follows)});
  }
  nothing_left_ = changes_told_ > 0 && tracer_.link().attached() == 0 && !may_come_again_;
}

void TraceWatch::tell_shortened() {
  const std::vector<SkippedSite> all = shortened_sites(tracer_.plan());
  if (shortened_told_ >= all.size()) return;
  const std::vector<SkippedSite> fresh(all.begin() + static_cast<std::ptrdiff_t>(shortened_told_), all.end());
  for (const SessionNotice& each : notices_of_reasons(tracer_.plan(), fresh, NoticeKind::shortened, "not all values"))
    told_.notice(each);
  shortened_told_ = all.size();
}

void TraceWatch::tell_others_pay() {
  const auto& why = tracer_.others_pay();
  if (!why || std::exchange(others_pay_told_, true)) return;
  told_.notice(
      {NoticeKind::others_pay,
       {},
       fmt::format("processes that are not traced have the breakpoints, too, and pay for each hit: {}", *why)});
}

void TraceWatch::tell_unknown_interpreters() {
  for (const std::string& each : tracer_.take_unknown_interpreters()) told_.notice({NoticeKind::interpreter, {}, each});
}

void TraceWatch::tell_given_up() {
  constexpr std::chrono::seconds pause{1};
  constexpr int pause_of_work = 20;
  const bool spans = first_plan_.spans.has_value();
  if (given_up_told_ || Clock::now() < next_account_ || (!spans && !traces_calls(first_plan_))) return;
  const auto began = Clock::now();
  const bool first = next_account_ == Clock::time_point();
  std::uint64_t given_up = 0;
  if (!first)
    for (const ProbeCounts& probe : tracer_.counts()) given_up += probe.given_up;
  next_account_ = Clock::now() + std::max<Clock::duration>(pause, pause_of_work * (Clock::now() - began));
  if (given_up == 0) return;
  given_up_told_ = true;
  told_.notice({NoticeKind::given_up,
                {},
                fmt::format("more {} have begun and not ended than there is room for: the oldest are given up ({} so "
                            "far), and counted as abandoned",
                            spans ? "spans" : "calls", given_up)});
}

void TraceWatch::tell_moved_code() {
  constexpr std::chrono::milliseconds first{200};
  constexpr std::chrono::minutes longest{1};
  if (!run_.command() || Clock::now() < next_moved_look_) return;
  if (next_moved_look_ != Clock::time_point()) {
    std::vector<pid_t> pids = descendants_of(*run_.command());
    pids.push_back(*run_.command());
    tell_moved_code_of(pids);
  }
  moved_pause_ = std::clamp<Clock::duration>(2 * moved_pause_, first, longest);
  next_moved_look_ = Clock::now() + moved_pause_;
}

void TraceWatch::tell_moved_code_of_all() {
  const bool of_all = !run_.command() && pids_of(first_plan_.scope).empty();
  if (!of_all || first_plan_.files.empty()) return;
  std::vector<pid_t> pids;
  std::error_code ended;
  for (const auto& each : std::filesystem::directory_iterator("/proc", ended)) {
    const std::string name = each.path().filename();
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec == std::errc() && pid > 0) pids.push_back(pid);
  }
  tell_moved_code_of(pids);
}

void TraceWatch::tell_moved_code_of(const std::vector<pid_t>& pids) {
  constexpr std::size_t most = 3;
  for (std::string& each : moved_code(tracer_.plan(), pids)) {
    if (moved_told_.size() == most) return;
    if (const auto [text, fresh] = moved_told_.insert(std::move(each)); fresh)
      told_.notice({NoticeKind::moved_code, {}, *text});
  }
}

void TraceWatch::tell_cgroups() {
  if (tracer_.find_cgroups()) told_.notice({NoticeKind::cgroup, {}, "followed: a cgroup went, or came again"});
}

}  // namespace usdt::session
