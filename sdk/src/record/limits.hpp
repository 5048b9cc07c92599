// SPDX-License-Identifier: BSD-2-Clause
// What a recording may make its reader keep. Anybody may have written it, and small things in a file become larger ones
// in memory: an empty text is a byte there and 32 here. Private to record/.
#pragma once

#include <cstddef>
#include <cstdint>

namespace usdt::record {

/// Bytes that a block unpacks to, at most: a few events, should each have all the texts there can be.
inline constexpr std::uint32_t kMostUnpacked = 32U << 20;
/// Memory and time are bounded by the size of the file: a block unpacks to no more than so many times what it takes
/// there. One that would be larger is stored as it is.
inline constexpr std::uint64_t kMostRatio = 256;
/// Bytes of definitions, unpacked: those of 200,000 sites with names of their own take 20 MiB.
inline constexpr std::uint64_t kMostDefinitions = 64U << 20;
/// Definitions, and what they are made of: arguments, steps to members, enumerators. Those sites have 2 millions.
inline constexpr std::uint64_t kMostParts = 4U << 20;
inline constexpr std::uint64_t kMostEnumerators = 1U << 16;  ///< of one argument
inline constexpr std::uint64_t kMostFrames = 4096;           ///< of one stack
/// Stacks and frames that a block names: writers end a block at 256 KiB, in which there are some 20,000.
inline constexpr std::size_t kMostNamed = 1U << 17;
/// Hits that an event stands for.
inline constexpr double kMostWeight = 1e9;

}  // namespace usdt::record
