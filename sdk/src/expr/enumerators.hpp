// SPDX-License-Identifier: BSD-2-Clause
// Finds values of enums by the names that people give them. Private to expr/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "usdt/type.hpp"

namespace usdt::expr {

/// Whether `written`, "BUSY", "State::BUSY" or "net::BUSY", means `enumerator` of an enum of that type ("enum state",
/// "net::State"). In front of it there may be the type, or of an enum without "class" what the type is in, each with or
/// without what is around it.
[[nodiscard]] bool names_enumerator(std::string_view written, std::string_view type, std::string_view enumerator);

/// Returns the end of a message about a value that does not exist: names near to it, or else the first ones.
[[nodiscard]] std::string near_enumerators(std::string_view written, const std::vector<Enumerator>& all);

}  // namespace usdt::expr
