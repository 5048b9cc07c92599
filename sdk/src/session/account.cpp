// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/account.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "base/counted.hpp"

namespace usdt {
inline namespace v1 {
namespace {

using Role = CountRole;

constexpr std::array<CountInfo, 19> kCounts{{
    {"hits", &Account::hits, Role::all, "the program ran for a process that counts"},
    {"delivered", &Account::delivered, Role::events, "somebody took the event"},
    {"ring_full", &Account::ring_full, Role::lost, "the reader was too slow for the ring"},
    {"calls_full", &Account::calls_full, Role::lost, "there was no room to keep the beginning of a call or span"},
    {"unfinished", &Account::unfinished, Role::lost, "the call or span has not ended"},
    {"abandoned", &Account::abandoned, Role::lost, "the call or span will not be seen to end"},
    {"given_up", &Account::given_up, Role::part, "of those that are abandoned: for want of room"},
    {"discarded", &Account::discarded, Role::lost, "as many events as were asked for had come"},
    {"not_written", &Account::not_written, Role::lost, "the event did not get to where it was to be written"},
    {"table_full", &Account::table_full, Role::lost, "the table had no room for another row"},
    {"rejected", &Account::rejected, Role::left_out, "the question does not hold"},
    {"undecided", &Account::undecided, Role::left_out, "it is not known whether the question holds"},
    {"not_sampled", &Account::not_sampled, Role::left_out, "the hit was not chosen"},
    {"held_back", &Account::held_back, Role::left_out, "there were more events a second than were asked for"},
    {"faster", &Account::faster, Role::left_out, "others took longer"},
    {"paired", &Account::paired, Role::pairing, "the span that began here has ended"},
    {"unmatched", &Account::unmatched, Role::pairing, "no span had begun that could end here"},
    {"unpaired", &Account::unpaired, Role::pairing, "what pairs the ends of spans could not be read"},
    {"estimated", &Account::estimated, Role::estimate, "hits as far as can be told, those of times without links, too"},
}};

}  // namespace

std::span<const CountInfo> counts() noexcept { return kCounts; }

std::uint64_t Account::lost() const noexcept {
  std::uint64_t sum = 0;
  for (const CountInfo& count : kCounts)
    if (count.role == CountRole::lost) sum += this->*count.member;
  return sum;
}

void Account::add(const Account& other) noexcept {
  for (const CountInfo& count : kCounts) this->*count.member += other.*count.member;
}

void Account::add_recorded(const ProbeCounts& then) noexcept {
  Account recorded;
  static_cast<ProbeCounts&>(recorded) = then;
  for (const CountInfo& count : kCounts) {
    const bool is_of_now = count.role == CountRole::all || count.role == CountRole::events ||
                           count.role == CountRole::estimate || count.member == &Account::table_full;
    if (!is_of_now) this->*count.member += recorded.*count.member;
  }
  hits = then.hits;
  missed = then.missed;
}

Account SessionSummary::total() const {
  Account sum;
  for (const Account& probe : probes) sum.add(probe);
  return sum;
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

}  // namespace v1
}  // namespace usdt
