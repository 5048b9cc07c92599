// SPDX-License-Identifier: BSD-2-Clause
// Places of the calling conventions, and those of debug information, as Locations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arch/user_calls.hpp"
#include "usdt/location.hpp"
#include "usdt/type.hpp"

namespace usdt::arch {

/// A value's type and location, once both are known.
struct UserValue {
  Type type;
  Location location;
  std::vector<Piece> pieces;  ///< where its bytes are, if it is no number or in several places
};

/// Why no value of this type can be read, wherever it is; empty: it can.
[[nodiscard]] std::string why_unreadable(const Type& type);
[[nodiscard]] bool is_place(const Location& location);

[[nodiscard]] UserValue nowhere(const Type& type, std::string reason);
/// `size` bytes of a register, if probes are given it.
[[nodiscard]] Location in_register(const Arch& arch, RegisterId id, std::uint32_t size);
/// One value from its pieces where they lie side by side: in memory, or on i386 in two registers. `unreadable`: what
/// why_unreadable() says of its type.
[[nodiscard]] UserValue joined(UserValue value, const std::string& unreadable);
/// Returns the value at a place of the calling convention.
[[nodiscard]] UserValue value_at(const Arch& arch, const UserPlace& place, const Type& type);

}  // namespace usdt::arch
