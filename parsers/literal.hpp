// SPDX-License-Identifier: BSD-2-Clause
// Backslashes in the literals of an expression.
#pragma once

#include <string>
#include <string_view>

#include "usdt/result.hpp"

namespace usdt::parsers {

/// Returns the text that a literal stands for, without its quotes: "\150ello" is "hello". Escapes are those of C, with
/// exactly two digits behind "\x", as texts are shown. Errors: syntax with the column of an escape that C does not
/// have.
[[nodiscard]] Result<std::string> text_of_literal(std::string_view inner);

}  // namespace usdt::parsers
