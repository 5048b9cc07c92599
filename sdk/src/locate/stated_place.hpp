// SPDX-License-Identifier: BSD-2-Clause
// What debug information says of one variable at one instruction, whether that holds yet or not. Private to locate/.
#pragma once

#include <string_view>
#include <vector>

#include "locate/location.hpp"
#include "locate/moment.hpp"
#include "locate/parameters.hpp"

namespace usdt::locate {

/// Why a value is not taken for the one that was passed.
constexpr std::string_view kAssigned = "told by a value that may have been assigned to it at this very instruction";

/// The place that debug information states for one parameter.
struct StatedPlace {
  std::vector<WherePiece> pieces;  ///< empty: nothing
  bool from_list = false;          ///< of this very address, not of the whole function
};

[[nodiscard]] StatedPlace stated_place(const Parameter& parameter, const Moment& moment);

/// The place that a list states for the code from `begin` on.
struct ListedPlace {
  VirtAddr begin;
  std::vector<WherePiece> pieces;
};
/// The first entries of a parameter's list, whatever they are of; none: it has no list.
[[nodiscard]] std::vector<ListedPlace> listed_places(const Parameter& parameter, const Moment& moment);

}  // namespace usdt::locate
