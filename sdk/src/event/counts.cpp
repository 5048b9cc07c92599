// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/counts.hpp"

#include <algorithm>
#include <array>

#include "event/kernel_counts.hpp"

namespace usdt {
inline namespace v1 {
namespace {

using Counts = ProbeCounts;
using Kernel = usdt_site_stats;
using Role = CountRole;

/// A number, and the one of the kernel that it is the sum of; null: it is found out otherwise.
struct CountRow {
  CountInfo info;
  __u64 Kernel::*kernel = nullptr;
};

constexpr bool kSeldom = true;

constexpr std::array kCountRows{
    CountRow{{"hits", &Counts::hits, Role::all, 0, 1, false, "the program ran for a process that counts"},
             &Kernel::hits},
    CountRow{
        {"delivered", &Counts::delivered, Role::events, 0, 2, false, "somebody took the event, or it is in a row"}},
    CountRow{{"not_sampled", &Counts::not_sampled, Role::left_out, kOfSample | kOfOverhead, 12, false,
              "the hit was not chosen, or came while sites were attached or detached"},
             &Kernel::not_sampled},
    CountRow{{"estimated", &Counts::estimated, Role::estimate, kOfOverhead, 14, false,
              "hits as far as can be told, those of times without links, too"}},
    CountRow{{"held_back", &Counts::held_back, Role::left_out, kOfRate, 13, false,
              "there were more events a second than were asked for"},
             &Kernel::held_back},
    CountRow{{"faster", &Counts::faster, Role::left_out, kOfSlowest | kIfAny, 15, false, "others took longer"},
             &Kernel::faster},
    CountRow{
        {"rejected", &Counts::rejected, Role::left_out, kOfWhere | kOfTable, 6, false, "the question does not hold"},
        &Kernel::rejected},
    CountRow{{"undecided", &Counts::undecided, Role::left_out, kOfWhere | kOfTable, 7, false,
              "it is not known whether the question holds"},
             &Kernel::undecided},
    CountRow{{"ring_full", &Counts::ring_full, Role::lost, 0, 3, false, "the reader was too slow for the ring"},
             &Kernel::ring_full},
    CountRow{{"discarded", &Counts::discarded, Role::lost, 0, 8, false, "as many events as were asked for had come"}},
    CountRow{{"not_written", &Counts::not_written, Role::lost, 0, 0, kSeldom,
              "the event did not get to where it was to be written"}},
    CountRow{{"folded_full", &Counts::folded_full, Role::lost, kIfAny, 0, kSeldom,
              "folded stacks had no room for another one"}},
    CountRow{
        {"table_full", &Counts::table_full, Role::lost, kOfTable, 0, kSeldom, "the table had no room for another row"},
        &Kernel::table_full},
    CountRow{{"calls_full", &Counts::calls_full, Role::lost, kOfCalls | kOfSpans, 4, false,
              "there was no room to keep the beginning of a call or span"},
             &Kernel::calls_full},
    CountRow{{"paired", &Counts::paired, Role::pairing, kOfSpans, 9, false, "the span that began here has ended"}},
    CountRow{{"unfinished", &Counts::unfinished, Role::lost, kOfCalls | kOfSpans, 5, false,
              "the call or span has not ended"}},
    CountRow{{"abandoned", &Counts::abandoned, Role::lost, kOfCalls | kOfSpans, 16, kSeldom,
              "the call or span will not be seen to end"}},
    CountRow{{"given_up", &Counts::given_up, Role::part, kOfCalls | kOfSpans, 17, kSeldom,
              "of those that are abandoned: for want of room"}},
    CountRow{
        {"unmatched", &Counts::unmatched, Role::pairing, kOfSpans, 10, false, "no span had begun that could end here"}},
    CountRow{{"unpaired", &Counts::unpaired, Role::pairing, kOfSpans, 11, false,
              "what pairs the ends of spans could not be read"},
             &Kernel::unpaired},
};

constexpr auto kCountInfos = [] {
  std::array<CountInfo, kCountRows.size()> all{};
  std::ranges::transform(kCountRows, all.begin(), &CountRow::info);
  return all;
}();

}  // namespace

std::span<const CountInfo> counts() noexcept { return kCountInfos; }

std::uint64_t sum_counts(const ProbeCounts& of, std::initializer_list<CountRole> roles) noexcept {
  std::uint64_t sum = 0;
  for (const CountInfo& count : kCountInfos)
    if (std::ranges::find(roles, count.role) != roles.end() && __builtin_add_overflow(sum, of.*count.member, &sum))
      return UINT64_MAX;
  return sum;
}

}  // namespace v1

void event::add_kernel_counts(ProbeCounts& counts, const usdt_site_stats& counted) noexcept {
  for (const CountRow& row : kCountRows)
    if (row.kernel != nullptr) counts.*row.info.member += counted.*row.kernel;
}

}  // namespace usdt
