// SPDX-License-Identifier: BSD-2-Clause
// Encoded specs without repetition. Private to plan/.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "usdt/plan.hpp"

namespace usdt::plan {

/// Gives equal specs one number.
class SpecTable {
 public:
  /// The number of the spec with these arguments and this user cookie, new or known.
  [[nodiscard]] std::uint32_t intern(const std::vector<usdt_arg_spec>& args, std::uint64_t user_cookie);
  [[nodiscard]] std::vector<EncodedSpec> take() && { return std::move(specs_); }

 private:
  std::vector<EncodedSpec> specs_;
  std::unordered_multimap<std::size_t, std::uint32_t> by_hash_;
};

}  // namespace usdt::plan
