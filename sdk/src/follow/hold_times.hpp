// SPDX-License-Identifier: BSD-2-Clause
// How long programs were held. Private to follow/.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace usdt::follow {

/// Counts durations in eighths of powers of two: a percentile is at most an eighth too large.
class HoldTimes {
 public:
  void add(std::uint64_t ns) noexcept {
    ++counts_[bucket_of(ns)];
    ++held_;
    longest_ = std::max(longest_, ns);
  }
  void add_let_go() noexcept { ++let_go_; }

  [[nodiscard]] std::uint64_t held() const noexcept { return held_; }
  [[nodiscard]] std::uint64_t let_go() const noexcept { return let_go_; }  ///< after kLongest, whatever they run
  [[nodiscard]] std::uint64_t longest() const noexcept { return longest_; }
  /// So long, or shorter, were 99 of 100 held; 0: none was.
  [[nodiscard]] std::uint64_t p99() const noexcept {
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen > 0 && seen * 100 >= held_ * 99) return std::min(longest_, upper_end(i));
    }
    return longest_;
  }

 private:
  static constexpr unsigned kParts = 8, kBits = 3;

  static std::size_t bucket_of(std::uint64_t ns) noexcept {
    if (ns < kParts) return ns;
    const auto power = static_cast<unsigned>(std::bit_width(ns)) - 1;
    return (power - kBits + 1) * kParts + (ns >> (power - kBits)) % kParts;
  }
  static std::uint64_t upper_end(std::size_t bucket) noexcept {
    if (bucket < kParts) return bucket;
    const unsigned power = static_cast<unsigned>(bucket / kParts) + kBits - 1;
    return ((kParts + bucket % kParts + 1) << (power - kBits)) - 1;
  }

  std::array<std::uint64_t, (64 - kBits + 1) * kParts> counts_{};
  std::uint64_t held_ = 0, let_go_ = 0, longest_ = 0;
};

}  // namespace usdt::follow
