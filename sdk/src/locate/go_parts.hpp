// SPDX-License-Identifier: BSD-2-Clause
// Where the parts of Go's values are. Private to locate/.
#pragma once

#include "arch/user_calls.hpp"
#include "locate/place_checker.hpp"

namespace usdt::locate {

/// Go's compiler writes a piece for each part that it follows of a value (the pointer of a string, a member), and
/// nothing for what lies between them or for parts that it does not follow: readers who add up their sizes take one
/// part for another (cmd/compile/internal/ssa/debug.go, go 1.19). Gives the pieces of `what` the places in the value
/// that they have by its `shape` and by where it is passed: `place`, none in an inlined copy. What is of one piece
/// counts as a part, too, if a list tells it. Returns false where it is not certain which part a piece is.
[[nodiscard]] bool place_parts_of_go(StatedPlace& what, const arch::UserShape& shape,
                                     const std::optional<arch::UserPlace>& place, const Moment& moment,
                                     const PlaceChecker& checker);

}  // namespace usdt::locate
