// SPDX-License-Identifier: BSD-2-Clause
// Numbers that definitions have for what is said of arguments and places. Private to record/.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "usdt/recording.hpp"

namespace usdt::record {

// Flags of an argument.
constexpr unsigned kResult = 1, kDerived = 2, kHidden = 4, kSigned = 8, kPartOf = 16, kLength = 32, kUnreadable = 64,
                   kDeclared = 128, kConstant = 256, kOfEnd = 512, kCounts = 1024, kElement = 2048, kAlternative = 4096;
/// Kinds of a site's place.
enum PlaceKind : std::uint8_t { kInFile = 0, kAtFunction = 1, kAtTracepoint = 2 };

// The file has these numbers.
static_assert(static_cast<int>(TypeKind::integer) == 0 && static_cast<int>(TypeKind::array) == 7);
static_assert(static_cast<int>(Moment::entry) == 1 && static_cast<int>(Moment::both) == 3);
static_assert(static_cast<int>(FileChangeKind::written) == 0 && static_cast<int>(FileChangeKind::removed) == 2);
static_assert(static_cast<int>(FollowKind::library) == 0 && static_cast<int>(FollowKind::file) == 3);
static_assert(static_cast<int>(FrameIssue::none) == 0 && static_cast<int>(FrameIssue::code_replaced) == 25);
static_assert(static_cast<int>(CodeTier::unknown) == 0 && static_cast<int>(CodeTier::optimized) == 3);

/// 0 is none, and all else one more.
inline void put(ByteWriter& out, std::optional<std::uint64_t> number) { out.varint(number ? *number + 1 : 0); }
inline std::optional<std::uint64_t> get(ByteReader& in) {
  const std::uint64_t number = in.varint();
  return number == 0 ? std::nullopt : std::optional(number - 1);
}

}  // namespace usdt::record
