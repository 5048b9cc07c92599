// SPDX-License-Identifier: BSD-2-Clause
// Ledgers: the numbers of the library's table by the names that they have in JSON, and what a summary has beside them.
#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <utility>

#include "handles.hpp"

namespace usdtc {
namespace {

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

constexpr usdtc_count_info described(const char* name, std::uint32_t role, const char* words) {
  return {.size = sizeof(usdtc_count_info), .name = name, .words = words, .role = role, .reserved = 0};
}

/// The numbers that a ledger has beside those of usdt::counts().
enum Beside : std::uint8_t { kLost, kMissed, kUnattributed, kBesides };
constexpr std::array<usdtc_count_info, kBesides> kBesideInfos{
    {described("lost", USDTC_COUNT_LOST, "hits without an event, for whatever reason: the sum of those reasons"),
     described("missed", USDTC_COUNT_APART, "the kernel ran no program for the hit"),
     described("unattributed", USDTC_COUNT_APART,
               "in the total only: it could not be told whose descendant the process is")}};

/// A number of every ledger.
struct Number {
  usdtc_count_info info;
  const usdt::CountInfo* count;  ///< null: one of Beside
};

const std::vector<Number>& numbers() {
  static const std::vector<Number> all = [] {
    std::vector<Number> made;
    for (const usdtc_count_info& info : kBesideInfos) made.push_back({info, nullptr});
    for (const usdt::CountInfo& count : usdt::counts())
      if (usdt::tell_count(count, {}, false))  // names and words are literals, which end at a NUL
        made.push_back({described(count.name.data(), role_of(count.role), count.words.data()), &count});
    return made;
  }();
  return all;
}

/// The numbers of a probe, or of all together.
class Values {
 public:
  /// `n` SIZE_MAX: of all together.
  static usdt::Result<Values> of(const usdtc_ledger* ledger, std::size_t n) {
    if (!ledger) return invalid("the ledger is NULL");
    if (n == SIZE_MAX) return Values(ledger->total, ledger->summary.missed, ledger->summary.undecided);
    const auto& probes = ledger->summary.probes;
    if (n >= probes.size()) return no_more("probe", n, probes.size());
    return Values(probes[n], probes[n].missed, 0);
  }

  [[nodiscard]] std::uint64_t operator[](std::size_t number) const {
    switch (number) {
      case kLost:
        return account_.lost();
      case kMissed:
        return missed_.value_or(UINT64_MAX);
      case kUnattributed:
        return unattributed_;
      default:
        return usdt::tell_count(*numbers()[number].count, account_, false)->value;
    }
  }

 private:
  Values(const usdt::Account& account, std::optional<std::uint64_t> missed, std::uint64_t unattributed)
      : account_(account), missed_(missed), unattributed_(unattributed) {}

  const usdt::Account& account_;
  std::optional<std::uint64_t> missed_;
  std::uint64_t unattributed_;
};

usdt::Result<std::size_t> number_of(const char* name) {
  const auto& all = numbers();
  const auto found = std::ranges::find(all, std::string_view(name), [](const Number& each) { return each.info.name; });
  if (found == all.end()) return usdt::fail(usdt::ErrorKind::not_found, fmt::format("no number is called {}", name));
  return static_cast<std::size_t>(found - all.begin());
}

usdtc_overhead overhead_of(const usdt::Overhead& overhead) {
  const auto nanoseconds = [](std::chrono::nanoseconds time) { return static_cast<std::uint64_t>(time.count()); };
  usdtc_overhead out{};
  out.flags = (overhead.of_processors ? std::uint32_t{USDTC_OVERHEAD_OF_PROCESSORS} : 0) |
              (overhead.clocked ? std::uint32_t{USDTC_OVERHEAD_CLOCKED} : 0);
  out.allowed = overhead.allowed;
  out.caused = overhead.caused;
  out.looked_at = overhead.looked_at;
  out.windows = overhead.windows;
  out.of_hit = nanoseconds(overhead.of_hit);
  out.looked_for = nanoseconds(overhead.looked_for);
  out.lasted = nanoseconds(overhead.lasted);
  out.trouble = or_null(overhead.trouble);
  return out;
}

}  // namespace
}  // namespace usdtc

extern "C" {

int usdtc_count_describe(size_t n, struct usdtc_count_info* info, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    const auto& all = usdtc::numbers();
    if (n >= all.size()) return usdtc::no_more("number", n, all.size());
    return usdtc::write_struct(all[n].info, info, usdtc::kCountInfo, "usdtc_count_info");
  });
}

int usdtc_ledger_value(const usdtc_ledger* ledger, size_t n, const char* name, uint64_t* value, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!name || !value) return usdtc::invalid("the name of the number, or the place for it, is NULL");
    const auto values = usdtc::Values::of(ledger, n);
    if (!values) return usdt::fail(values.error());
    const auto number = usdtc::number_of(name);
    if (!number) return usdt::fail(number.error());
    *value = (*values)[*number];
    return {};
  });
}

int usdtc_ledger_values(const usdtc_ledger* ledger, size_t n, uint64_t* values, size_t count, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    const auto found = usdtc::Values::of(ledger, n);
    if (!found) return usdt::fail(found.error());
    if (!values && count > 0) return usdtc::invalid("the place for the numbers is NULL");
    for (std::size_t number = 0; number < std::min(count, usdtc::numbers().size()); ++number)
      values[number] = (*found)[number];
    return {};
  });
}

int usdtc_ledger_overhead(const usdtc_ledger* ledger, usdtc_overhead* overhead, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!ledger) return usdtc::invalid("the ledger is NULL");
    if (!ledger->summary.overhead) return usdt::fail(usdt::ErrorKind::not_found, "no max_overhead was asked for");
    return usdtc::write_struct(usdtc::overhead_of(*ledger->summary.overhead), overhead, usdtc::kOverhead,
                               "usdtc_overhead");
  });
}

void usdtc_ledger_free(usdtc_ledger* ledger) { delete ledger; }
}
