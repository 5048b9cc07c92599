// SPDX-License-Identifier: BSD-2-Clause
#include "export/slice_lanes.hpp"

#include <algorithm>

namespace usdt::exports {

bool SliceLane::take(std::uint64_t begin, std::uint64_t end) {
  // One that ends where this begins was written before it, and so is out of its way; one that begins where this begins
  // or ends would be opened before this is.
  const auto first = std::ranges::find_if(extents_.rbegin(), extents_.rend(), [&](const Extent& extent) {
                       return extent.end <= begin && extent.begin < begin;
                     }).base();
  const auto behind = std::find_if(first, extents_.end(), [&](const Extent& extent) { return extent.begin > end; });
  const bool within =
      std::all_of(first, behind, [&](const Extent& extent) { return extent.begin > begin && extent.end <= end; });
  if (!within) return false;
  const auto at = extents_.erase(first, behind);
  extents_.insert(at, {begin, end});
  if (extents_.size() > kMost) {
    const auto last = extents_.begin() + kMost / 2;
    last->begin = extents_.front().begin;
    extents_.erase(extents_.begin(), last);
  }
  return true;
}

}  // namespace usdt::exports
