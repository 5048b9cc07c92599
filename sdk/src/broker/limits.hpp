// SPDX-License-Identifier: BSD-2-Clause
// What either side of usdt-broker's socket takes at most of the other. Nobody is trusted there: what is longer, or
// more, ends the connection, or is refused. Private to broker/ and serve/.
#pragma once

#include <cstddef>
#include <cstdint>

namespace usdt::broker {

inline constexpr std::uint32_t kProtocol = 1;

/// A packet of the socket. Messages that are longer are several.
inline constexpr std::size_t kMostOfPacket = 32U << 10;
/// Descriptors in one packet (SCM_MAX_FD of the kernel is 253), and in one message.
inline constexpr std::size_t kMostFdsOfPacket = 64;
inline constexpr std::size_t kMostFds = 512;
/// A message: a plan of 16,384 sites with specs of their own takes 3 MiB.
inline constexpr std::size_t kMostBytes = 8U << 20;
inline constexpr std::size_t kMostText = 64U << 10;  ///< of an error: the verifier's log may be longer, and is cut

// What is in a plan.
inline constexpr std::size_t kMostFiles = 256;
inline constexpr std::size_t kMostSites = 16384;  ///< and groups, probes, specs
inline constexpr std::size_t kMostRets = 4096;    ///< of one function
inline constexpr std::size_t kMostPlaces = 65536;
inline constexpr std::size_t kMostFilters = 256;
inline constexpr std::size_t kMostPrograms = 256;
inline constexpr std::size_t kMostPids = 1024;
inline constexpr std::size_t kMostName = 512;
inline constexpr std::size_t kMostProbeName = 64U << 10;  ///< a function's in C++ has the arguments of its templates
inline constexpr std::size_t kMostMaps = 64;

// What one connection may have.
inline constexpr std::size_t kMostObjects = 64;
inline constexpr std::size_t kMostLinks = 4096;
inline constexpr std::uint64_t kMostMapBytes = 512ULL << 20;

}  // namespace usdt::broker
