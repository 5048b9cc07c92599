// SPDX-License-Identifier: BSD-2-Clause
// Encoded specs without repetition. Private to plan/.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "usdt/plan.hpp"

namespace usdt::plan {

/// What usdt_cookie() shall say at a point.
[[nodiscard]] inline std::uint64_t user_cookie(const PlanOptions& options, const PointName& point) {
  return options.user_cookie_of ? options.user_cookie_of(point) : options.user_cookie;
}

/// Gives equal specs one number.
class SpecTable {
 public:
  /// The number of `spec`, new or known.
  [[nodiscard]] Index<EncodedSpec> intern(EncodedSpec spec);
  /// Makes room for so many more specs.
  void reserve(std::size_t more) { by_hash_.reserve(by_hash_.size() + more); }
  [[nodiscard]] Table<EncodedSpec> take() && { return std::move(specs_); }

 private:
  Table<EncodedSpec> specs_;
  std::unordered_multimap<std::size_t, Index<EncodedSpec>> by_hash_;
};

}  // namespace usdt::plan
