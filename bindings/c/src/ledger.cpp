// SPDX-License-Identifier: BSD-2-Clause
// Ledgers: the numbers of the library's table, and the few by which libusdt-c tells more, or calls otherwise.
#include <algorithm>
#include <array>
#include <functional>

#include "handles.hpp"

namespace usdtc {
namespace {

using Account = usdt::Account;

/// A number of libusdt-c.
struct Number {
  usdtc_count_info info;
  std::function<std::uint64_t(const Account&)> value;
};

/// Names that are others than the library's: `undecided` is here whose process is not known. Null: nothing is written
/// here that could fail.
constexpr std::array<std::pair<std::string_view, const char*>, 2> kRenamed{
    {{"undecided", "unanswered"}, {"not_written", nullptr}}};

/// Returns the name here; null: there is no such number.
const char* name_of(const usdt::CountInfo& count) {
  if (!usdt::tell_count(count, {}, false)) return nullptr;
  const auto* found = std::ranges::find(kRenamed, count.name, &std::pair<std::string_view, const char*>::first);
  return found != kRenamed.end() ? found->second : count.name.data();  // a literal, which ends at a NUL
}

std::uint32_t role_of(usdt::CountRole role) {
  switch (role) {
    case usdt::CountRole::all:
      return USDTC_COUNT_HITS;
    case usdt::CountRole::events:
      return USDTC_COUNT_DELIVERED;
    case usdt::CountRole::lost:
      return USDTC_COUNT_LOST;
    case usdt::CountRole::left_out:
      return USDTC_COUNT_LEFT_OUT;
    case usdt::CountRole::pairing:
      return USDTC_COUNT_PAIRING;
    case usdt::CountRole::part:
    case usdt::CountRole::estimate:
      break;
  }
  return USDTC_COUNT_APART;
}

usdtc_count_info described(const char* name, std::uint32_t role, const char* words) {
  return {.size = sizeof(usdtc_count_info), .name = name, .words = words, .role = role, .reserved = 0};
}

/// Events that were lost, without those that may still come and those that nobody took.
std::uint64_t lost_in(const Account& account) { return account.lost() - account.without_end() - account.discarded; }

/// The places of the numbers that are of the whole trace.
constexpr std::size_t kMissed = 1, kUndecided = 2;

const std::vector<Number>& numbers() {
  static const std::vector<Number> all = [] {
    std::vector<Number> made{
        {described("lost", USDTC_COUNT_LOST, "events that were lost, for whatever reason"), lost_in},
        {described("missed", USDTC_COUNT_APART, "the kernel ran no program for the hit"),
         [](const Account& account) { return account.missed.value_or(UINT64_MAX); }},
        {described("undecided", USDTC_COUNT_APART,
                   "in the total only: it could not be told whose descendant the process is"),
         [](const Account&) { return std::uint64_t{0}; }}};
    for (const usdt::CountInfo& count : usdt::counts())
      if (const char* name = name_of(count))
        made.push_back({described(name, role_of(count.role), count.words.data()),
                        [&count](const Account& account) { return usdt::tell_count(count, account, false)->value; }});
    return made;
  }();
  return all;
}

/// A member of usdtc_counts and the number of its name.
struct Member {
  std::string_view name;
  std::uint64_t usdtc_counts::*member;
};
constexpr std::array kMembers{Member{"hits", &usdtc_counts::hits},
                              Member{"delivered", &usdtc_counts::delivered},
                              Member{"lost", &usdtc_counts::lost},
                              Member{"ring_full", &usdtc_counts::ring_full},
                              Member{"calls_full", &usdtc_counts::calls_full},
                              Member{"unfinished", &usdtc_counts::unfinished},
                              Member{"discarded", &usdtc_counts::discarded},
                              Member{"missed", &usdtc_counts::missed},
                              Member{"undecided", &usdtc_counts::undecided},
                              Member{"rejected", &usdtc_counts::rejected},
                              Member{"unanswered", &usdtc_counts::unanswered},
                              Member{"table_full", &usdtc_counts::table_full},
                              Member{"not_sampled", &usdtc_counts::not_sampled},
                              Member{"held_back", &usdtc_counts::held_back},
                              Member{"faster", &usdtc_counts::faster},
                              Member{"paired", &usdtc_counts::paired},
                              Member{"unmatched", &usdtc_counts::unmatched},
                              Member{"unpaired", &usdtc_counts::unpaired},
                              Member{"estimated", &usdtc_counts::estimated},
                              Member{"abandoned", &usdtc_counts::abandoned}};

usdtc_counts counts_of(const std::vector<std::uint64_t>& values) {
  usdtc_counts out{};
  for (const Member& each : kMembers) {
    const auto found = std::ranges::find(numbers(), each.name,
                                         [](const Number& number) { return std::string_view(number.info.name); });
    out.*each.member = values[static_cast<std::size_t>(found - numbers().begin())];
  }
  return out;
}

std::vector<std::uint64_t> values_of(const Account& account) {
  std::vector<std::uint64_t> values;
  for (const Number& number : numbers()) values.push_back(number.value(account));
  return values;
}

/// The numbers of a probe; `n` SIZE_MAX: of all together.
usdt::Result<const std::vector<std::uint64_t>*> find_values(const usdtc_ledger* ledger, std::size_t n) {
  if (!ledger) return invalid("the ledger is NULL");
  if (n == SIZE_MAX) return &ledger->total;
  if (n >= ledger->probes.size()) return no_more("probe", n, ledger->probes.size());
  return &ledger->probes[n];
}

usdt::Result<void> write_counts(const usdtc_ledger* ledger, std::size_t n, usdtc_counts* counts) {
  auto values = find_values(ledger, n);
  if (!values) return usdt::fail(std::move(values.error()));
  return write_struct(counts_of(**values), counts, kCounts, "usdtc_counts");
}

}  // namespace

usdtc_ledger ledger_of(std::span<const usdt::ProbeCounts> probes, std::optional<std::uint64_t> missed,
                       std::uint64_t undecided) {
  usdtc_ledger ledger;
  Account total;
  for (const usdt::ProbeCounts& counted : probes) {
    Account account;
    static_cast<usdt::ProbeCounts&>(account) = counted;
    total.add(account);
    ledger.probes.push_back(values_of(account));
  }
  ledger.total = values_of(total);
  ledger.total[kMissed] = missed.value_or(UINT64_MAX);
  ledger.total[kUndecided] = undecided;
  return ledger;
}

}  // namespace usdtc

extern "C" {

int usdtc_count_describe(size_t n, struct usdtc_count_info* info, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    const auto& all = usdtc::numbers();
    if (n >= all.size()) return usdtc::no_more("number", n, all.size());
    return usdtc::write_struct(all[n].info, info, usdtc::kCountInfo, "usdtc_count_info");
  });
}

int usdtc_ledger_total(const usdtc_ledger* ledger, usdtc_counts* counts, usdtc_error** error) {
  return usdtc::guarded(error, [&] { return usdtc::write_counts(ledger, SIZE_MAX, counts); });
}

int usdtc_ledger_probe(const usdtc_ledger* ledger, size_t n, usdtc_counts* counts, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (ledger && n == SIZE_MAX) return usdtc::no_more("probe", n, ledger->probes.size());
    return usdtc::write_counts(ledger, n, counts);
  });
}

int usdtc_ledger_values(const usdtc_ledger* ledger, size_t n, uint64_t* values, size_t count, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    auto found = usdtc::find_values(ledger, n);
    if (!found) return usdt::fail(std::move(found.error()));
    if (!values && count > 0) return usdtc::invalid("the place for the numbers is NULL");
    std::copy_n((*found)->begin(), std::min(count, (*found)->size()), values);
    return {};
  });
}

void usdtc_ledger_free(usdtc_ledger* ledger) { delete ledger; }
}
