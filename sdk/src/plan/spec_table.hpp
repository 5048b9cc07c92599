// SPDX-License-Identifier: BSD-2-Clause
// Encoded specs without repetition. Private to plan/.
#pragma once

#include <cstdint>
#include <vector>

#include "base/hash_index.hpp"
#include "usdt/plan.hpp"

namespace usdt::plan {

/// Returns what usdt_cookie() shall say at a point.
[[nodiscard]] inline std::uint64_t user_cookie(const PlanOptions& options, const PointName& point) {
  return options.user_cookie_of ? options.user_cookie_of(point) : options.user_cookie;
}

/// Gives equal specs one number.
class SpecTable {
 public:
  /// The number of `spec`, new or known.
  [[nodiscard]] Index<EncodedSpec> intern(EncodedSpec spec);
  /// Makes room for so many specs in all.
  void reserve(std::size_t count) {
    by_hash_.reserve(count);
    specs_.reserve(count);
  }
  [[nodiscard]] Table<EncodedSpec> take() && { return std::move(specs_); }

 private:
  Table<EncodedSpec> specs_;
  HashIndex by_hash_;
};

}  // namespace usdt::plan
