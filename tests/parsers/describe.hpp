// SPDX-License-Identifier: BSD-2-Clause
// One argument as one line of text, the notation of the golden files in corpus/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "usdt/operand.hpp"

namespace usdt::parsers {

/// "s4 mem base=rbp disp=-20", "u8 const 5", "f8 reg rax", "u4 unreadable 7: missing ')'"; parts that have their
/// default value are left out, and so is the size of an argument without one ("u reg rdi").
[[nodiscard]] std::string describe(const ParsedArg& arg);

/// Checks what holds for every parse of every text: the arguments stand in `text` in their order with nothing but
/// white space between them, and each has either an operand or a reason that points into it. The empty string, or
/// what is wrong.
[[nodiscard]] std::string broken_invariant(std::string_view text, const std::vector<ParsedArg>& args);

}  // namespace usdt::parsers
