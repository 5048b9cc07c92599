// SPDX-License-Identifier: BSD-2-Clause
#include "measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace usdt::bench {

Result<std::vector<Series>> measure(unsigned rounds, const std::vector<Candidate>& candidates) {
  std::vector<Series> results(candidates.size(), Series(rounds));
  for (unsigned round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < candidates.size(); ++turn) {
      const std::size_t which = (turn + round) % candidates.size();
      auto value = candidates[which]();
      if (!value) return fail(value.error());
      results[which][round] = *value;
    }
  }
  return results;
}

Spread spread(Series values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  const double median = values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

namespace {

template <class Operation>
Series combine(const Series& left, const Series& right, Operation operation) {
  Series result(std::min(left.size(), right.size()));
  std::transform(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(result.size()), right.begin(), result.begin(),
                 operation);
  return result;
}

}  // namespace

Series ratio(const Series& values, const Series& base) {
  return combine(values, base, [](double value, double of) { return value / of; });
}

Series difference(const Series& values, const Series& base) {
  return combine(values, base, [](double value, double less) { return value - less; });
}

Series scaled(const Series& values, double factor) {
  Series result = values;
  for (double& value : result) value *= factor;
  return result;
}

std::string text(const Spread& spread, int decimals) {
  if (spread.low == spread.high) return fmt::format("{:.{}f}", spread.median, decimals);
  return fmt::format("{:.{}f} ({:.{}f}..{:.{}f})", spread.median, decimals, spread.low, decimals, spread.high,
                     decimals);
}

void print_verdict(const std::string& what, const Spread& measured, double limit, const std::string& unit) {
  fmt::print("  {:<7}  {}: {} {}, wanted at most {:.3g}\n", measured.median <= limit ? "met" : "NOT MET", what,
             text(measured, 3), unit, limit);
}

}  // namespace usdt::bench
