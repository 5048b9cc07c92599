// SPDX-License-Identifier: BSD-2-Clause
// How many hits a second the rows of a table had.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "usdt/usdt.hpp"
#include "view.hpp"

namespace usdt_trace {

/// Compares each look at a table with the one before.
class Rates {
 public:
  using Clock = std::chrono::steady_clock;

  /// The trace begins: no row has hits.
  void begin(Clock::time_point now) { began_ = looked_ = now; }
  /// Takes the rows as they are. `whole`: rates are those since the beginning, else since the look before.
  void look(const View& view, const std::vector<usdt::TableRow>& rows, Clock::time_point now, bool whole);
  /// Hits a second of the row with these keys, those that are shown.
  [[nodiscard]] double of(const std::vector<usdt::TableKey>& keys) const;

 private:
  using Counts = std::map<std::vector<usdt::TableKey>, std::uint64_t>;

  Clock::time_point began_, looked_;
  Counts before_, now_;
  double seconds_ = 0;  ///< between them
};

}  // namespace usdt_trace
