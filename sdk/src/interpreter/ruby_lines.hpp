// SPDX-License-Identifier: BSD-2-Clause
// Which line of a function of Ruby an instruction has: the set of positions at which a new entry of its lines begins,
// with the number of those up to a position at hand ("rank" of a succinct bit vector; Ruby's iseq.c).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace usdt::interpreter {

/// Returns how many words the set has for a function of `count` instructions and operands.
[[nodiscard]] std::uint64_t words_of_ranks(std::uint64_t count);

/// Returns how many entries begin at a position or before it; 0: the set does not have the position.
[[nodiscard]] std::uint32_t rank_of(std::span<const std::uint64_t> ranks, std::uint64_t position);

}  // namespace usdt::interpreter
