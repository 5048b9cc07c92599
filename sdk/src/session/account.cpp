// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/account.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <utility>

#include "base/counted.hpp"
#include "io/number_text.hpp"
#include "session/notice_words.hpp"
#include "usdt/question.hpp"
#include "usdt/question_plan.hpp"

namespace usdt {
inline namespace v1 {

std::uint64_t Account::lost() const noexcept { return sum_counts(*this, {CountRole::lost}); }

void Account::add(const Account& other) noexcept {
  for (const CountInfo& count : counts()) this->*count.member += other.*count.member;
}

void Account::add_recorded(const ProbeCounts& then) noexcept {
  for (const CountInfo& count : counts()) {
    const bool is_of_now = count.role == CountRole::all || count.role == CountRole::events ||
                           count.role == CountRole::estimate || count.member == &ProbeCounts::table_full;
    if (!is_of_now) this->*count.member += then.*count.member;
  }
  hits = then.hits;
  missed = then.missed;
}

std::uint16_t count_causes(const Question& question, const AttachPlan& plan) {
  // The kernel counts calls where they begin, unless they are asked about at their ends; a recording has those that
  // ended.
  const bool only_begun =
      question.view.count_only && !question.where && !question.view.question && question.recording.replay.empty();
  const bool calls = traces_calls(plan) && !only_begun;
  std::uint16_t causes = 0;
  for (const auto& [is_asked, cause] : {std::pair(question.limits.sample > 1, kOfSample),
                                        {question.limits.max_overhead > 0, kOfOverhead},
                                        {question.limits.max_rate > 0, kOfRate},
                                        {question.view.slowest > 0 || question.view.in_flight, kOfSlowest},
                                        {question.where != nullptr && !question.view.in_flight, kOfWhere},
                                        {question.view.question && !question.view.in_flight, kOfTable},
                                        {calls, kOfCalls},
                                        {plan.spans.has_value(), kOfSpans}})
    if (is_asked) causes |= cause;
  return causes;
}

std::optional<ToldCount> tell_count(const CountInfo& count, const Account& account, bool spans) {
  if (count.role == CountRole::part) return std::nullopt;
  ToldCount told{.name = count.name, .role = count.role, .value = account.*count.member};
  if (count.member == &ProbeCounts::unfinished && spans)
    told = {.name = "in_flight", .role = CountRole::pairing, .value = account.unfinished};
  else if (count.member == &ProbeCounts::unfinished)
    told.value = account.without_end();
  else if (count.member == &ProbeCounts::abandoned && !spans)
    told.value = account.given_up;
  return told;
}

Account SessionSummary::total() const {
  Account sum;
  for (const Account& probe : probes) sum.add(probe);
  return sum;
}

SessionSummary summarize(const Tracer& tracer) {
  SessionSummary summary{.skipped = session::skipped_sites(tracer),
                         .missed = tracer.missed(),
                         .changed = tracer.link().changes(),
                         .missed_hits = tracer.missed_hits(),
                         .undecided = tracer.undecided(),
                         .shielded = tracer.shielded(),
                         .started = tracer.link().started(),
                         .overhead = tracer.overhead()};
  for (const ProbeCounts& counts : tracer.counts()) summary.probes.push_back({counts});
  return summary;
}

std::uint32_t account_of(const AttachPlan& plan, std::uint32_t probe) {
  const auto& span = plan.probes[Index<PlannedProbe>(probe)].span;
  return span ? span->end.value : probe;
}

std::vector<std::uint64_t> by_account(const AttachPlan& plan, const std::vector<std::uint64_t>& events) {
  std::vector<std::uint64_t> all(events.size());
  for (std::uint32_t probe = 0; probe < events.size(); ++probe) all[account_of(plan, probe)] += events[probe];
  return all;
}

std::string change_text(const AttachPlan& plan, const FileChange& change, bool followed) {
  std::string path = plan.files[change.file].target.path.string();
  switch (change.kind) {
    case FileChangeKind::written:
      return fmt::format("{} was written to: its {} let go, since programs that start now would die of them", path,
                         counted(change.let_go, "site") + (change.let_go == 1 ? " is" : " are"));
    case FileChangeKind::replaced:
      return fmt::format("{} names another file now: processes that have the old one mapped are traced on{}", path,
                         followed ? "" : ", those that start from now on are not");
    case FileChangeKind::removed:
      return fmt::format("{} was removed: processes that have it mapped are traced on", path);
  }
  return path;
}

namespace {

/// Errors of estimates that are smaller are no more than chance makes.
constexpr double kErrorToSay = 0.1;

}  // namespace

std::string estimated_text(const Overhead& overhead) {
  const double error = overhead.estimate_error();
  const std::string bound = error < kErrorToSay ? ""
                            : error < 1
                                ? fmt::format(", within {:.0f} %", error * 100)
                                : fmt::format(
                                      "; numbers may be {:.0f} times too large, and no telling how many times too "
                                      "small: hits took {} of the time",
                                      1 + error, io::percent_text(1 - overhead.own_share));
  return fmt::format("estimated from {} of {}{}", io::percent_text(overhead.looked_at),
                     overhead.of_processors ? "what the processes did" : "the time", bound);
}

std::string estimated_text(std::uint64_t hits, const Overhead& overhead) {
  const double error = overhead.estimate_error();
  const auto part = [hits](double divisor) {
    return static_cast<std::uint64_t>(std::llround(static_cast<double>(hits) / divisor));
  };
  if (error < kErrorToSay) return fmt::format("about {} in all", counted(hits, "hit"));
  if (error < 1) return fmt::format("{} to {} hits in all", part(1 + error), part(1 - error));
  return fmt::format("at least {} in all, and no telling how many more: hits took {} of the time",
                     counted(part(1 + error), "hit"), io::percent_text(1 - overhead.own_share));
}

}  // namespace v1
}  // namespace usdt
