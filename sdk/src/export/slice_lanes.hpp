// SPDX-License-Identifier: BSD-2-Clause
// The choice of a track for each call or span, so that those of one track lie within each other or apart: viewers of
// time lines draw nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace usdt::exports {

/// Slices of one track, which come in any order and whose viewer sorts their beginnings and ends by time, and of equal
/// times has those first that were written first.
class SliceLane {
 public:
  /// Takes a slice from `begin` to `end`, ns; false: it may cross one that the lane has.
  [[nodiscard]] bool take(std::uint64_t begin, std::uint64_t end);

 private:
  /// Slices that lie within no other one; of many that are long over all from the first to the last, and what is
  /// between them.
  struct Extent {
    std::uint64_t begin, end;
  };
  static constexpr std::size_t kMost = 1024;

  std::vector<Extent> extents_;  ///< in the order of time
};

}  // namespace usdt::exports
