// SPDX-License-Identifier: BSD-2-Clause
// Notices of the tools: to standard error, each line behind the tool's name.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "usdt/error.hpp"

namespace usdt::tools {

/// "usdt-list: message". For a syntax error in `input`, the input and a caret below its column follow.
void print_error(std::string_view tool, const Error& error, std::string_view input = {});
/// "usdt-list: text".
void print_notice(std::string_view tool, std::string_view text);

/// "1 site", "3 sites".
[[nodiscard]] std::string counted(std::size_t n, std::string_view what);

}  // namespace usdt::tools
