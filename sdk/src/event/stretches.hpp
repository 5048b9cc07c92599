// SPDX-License-Identifier: BSD-2-Clause
// Estimates of what there was while nobody looked, from what was seen before and after. Private to event/.
#pragma once

#include <algorithm>

namespace usdt::event {

/// Work that was looked at, and what went before it and was not. Of the hits of the one it is taken that they were as
/// frequent in the other.
struct Stretch {
  double unseen = 0;  ///< ns of work
  double seen = 0;

  /// How many hits there were for each that was seen.
  [[nodiscard]] double weight() const noexcept { return seen > 0 ? (unseen + seen) / seen : 1; }
};

inline Stretch operator+(const Stretch& a, const Stretch& b) { return {a.unseen + b.unseen, a.seen + b.seen}; }

/// The weights of the last two stretches, of which the older one is over: `now` has only begun, and what it saw may be
/// too little to tell of what went before it. Until it has seen half as much as the other both have one weight.
struct StretchWeights {
  double before = 1;
  double now = 1;

  StretchWeights(const Stretch& last, const Stretch& current) noexcept : before(last.weight()), now(current.weight()) {
    if (last.seen > 0 && current.seen < last.seen / 2) before = now = (last + current).weight();
  }
};

}  // namespace usdt::event
