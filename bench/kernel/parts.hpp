// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "usdt/result.hpp"

namespace usdt::bench {

struct KernelSettings {
  unsigned rounds = 9;         ///< of hits
  std::uint64_t calls = 1000;  ///< in each of the loops a round takes the quickest of
  unsigned attach_rounds = 3;
  std::vector<std::size_t> sizes = {1, 20, 1000, 5000, 0};  ///< functions to attach to; 0: all
  std::size_t one_each = 100;                               ///< one link each up to so many functions
  std::size_t once = 10000;                                 ///< attached in one round only from so many functions on
};

/// What a hit costs, by the loop that is hit.
[[nodiscard]] Result<void> measure_hits(const KernelSettings& settings);
/// What attaching and detaching cost, phase by phase.
[[nodiscard]] Result<void> measure_attach(const KernelSettings& settings);

}  // namespace usdt::bench
