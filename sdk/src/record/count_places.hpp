// SPDX-License-Identifier: BSD-2-Clause
// The numbers of an account in their places in a recording. Private to record/.
#pragma once

#include <vector>

#include "usdt/counts.hpp"

namespace usdt::record {

/// The number behind which hits that the kernel ran no program for are.
inline constexpr unsigned kLastBeforeMissed = 8;

/// Returns the numbers that are recorded, in their places (CountInfo::recorded).
[[nodiscard]] inline std::vector<const CountInfo*> recorded_counts() {
  std::vector<const CountInfo*> all;
  for (const CountInfo& count : counts()) {
    if (count.recorded == 0) continue;
    if (all.size() < count.recorded) all.resize(count.recorded);
    all[count.recorded - 1U] = &count;
  }
  return all;
}

/// Whether the account of an earlier version may end before the number in this place: of a version without spans,
/// without guards, without limits of what a trace costs, without the slowest alone, or that took abandoned calls for
/// unfinished ones. Each number that came later may be missing.
[[nodiscard]] constexpr bool may_end_before(unsigned place) noexcept {
  return place == 9 || place == 12 || place == 14 || place == 15 || place == 16 || place > 17;
}

}  // namespace usdt::record
