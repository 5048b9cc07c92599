// SPDX-License-Identifier: BSD-2-Clause
// Paired measurement: in every round each candidate is measured once, in an order that rotates, so that a slow spell of
// a shared machine hits all of them. Ratios are taken within a round.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "usdt/result.hpp"

namespace usdt::bench {

struct Settings {
  unsigned rounds = 5;
  std::uint64_t hits = 20'000;  ///< of each candidate in each round
};

/// One number per round.
using Series = std::vector<double>;
using Candidate = std::function<Result<double>()>;

[[nodiscard]] Result<std::vector<Series>> measure(unsigned rounds, const std::vector<Candidate>& candidates);

struct Spread {
  double median = 0;
  double low = 0;
  double high = 0;
};
[[nodiscard]] Spread spread(Series values);
/// `values[i] / base[i]`, and the other operations that are done within a round.
[[nodiscard]] Series ratio(const Series& values, const Series& base);
[[nodiscard]] Series difference(const Series& values, const Series& base);
[[nodiscard]] Series scaled(const Series& values, double factor);

/// "1.60 (1.55..1.71)".
[[nodiscard]] std::string text(const Spread& spread, int decimals = 2);

/// Prints whether a median is within its limit.
void print_verdict(const std::string& what, const Spread& measured, double limit, const std::string& unit);

class Stopwatch {
 public:
  /// Nanoseconds since the last call, or since it was made.
  double lap_ns() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double, std::nano> spent = now - start_;
    start_ = now;
    return spent.count();
  }
  double lap_ms() { return lap_ns() / 1e6; }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace usdt::bench
