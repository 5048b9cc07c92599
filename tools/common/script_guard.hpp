// SPDX-License-Identifier: BSD-2-Clause
// What the parser of toml++ must not see.
#pragma once

#include <string>
#include <string_view>

#include "usdt/result.hpp"

namespace usdt::tools {

/// Refuses the text of a script that toml++ 3.3 has no bounds for, or no meaning; `file` is its name in errors. Errors:
/// limit (names with too many parts), syntax (a character that stands where TOML has none of its kind), with the place.
[[nodiscard]] Result<void> guard_parser(const std::string& file, std::string_view text);

}  // namespace usdt::tools
