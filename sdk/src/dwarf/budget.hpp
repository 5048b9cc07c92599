// SPDX-License-Identifier: BSD-2-Clause
// How much work a file may make. Private to dwarf/.
#pragma once

#include <cstdint>

namespace usdt::dwarf {

/// Limits the work for a file, which anybody may have written: so much for each of its bytes, and some at first. Files
/// of compilers need less. Bytes that a file leads to again and again are read as often, until this is spent.
class Budget {
 public:
  static constexpr std::uint64_t per_byte = 16;

  constexpr Budget(std::uint64_t at_first, std::uint64_t bytes) : left_(at_first + bytes * per_byte) {}
  [[nodiscard]] constexpr std::uint64_t left() const noexcept { return left_; }
  [[nodiscard]] constexpr bool spent() const noexcept { return left_ == 0; }
  /// More, as for what was not known of at first, or what another budget has left.
  constexpr void add(std::uint64_t work) noexcept { left_ += work; }
  /// False: that was too much.
  constexpr bool spend(std::uint64_t work) noexcept {
    const bool enough = work <= left_;
    left_ -= enough ? work : left_;
    return enough;
  }

 private:
  std::uint64_t left_;
};

}  // namespace usdt::dwarf
