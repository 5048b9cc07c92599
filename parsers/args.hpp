// SPDX-License-Identifier: BSD-2-Clause
// The argument text of a stapsdt note -> ParsedArg values, which view it. No X3 type appears in any header; each
// dialect is one grammar in one .cpp (x86_att.cpp, aarch64.cpp, riscv64.cpp).
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "usdt/machine.hpp"
#include "usdt/operand.hpp"

namespace usdt::parsers {

/// Every argument of `text` in its order, one entry each, however odd; never fails as a whole. Arguments are
/// separated by white space, except inside brackets or parentheses and around arm64 commas. An empty text, or
/// one that starts with ':' (a systemtap marker for "no arguments"), has none.
[[nodiscard]] std::vector<ParsedArg> parse_args(std::string_view text, Machine machine);
/// Refuses a temporary: the arguments would view a text that is gone.
template <class Text>
requires std::same_as<std::remove_const_t<Text>, std::string> std::vector<ParsedArg> parse_args(Text&& text, Machine)
= delete;

/// The AT&T dialect of x86-64 and i386.
[[nodiscard]] std::vector<ParsedArg> parse_x86_att(std::string_view text);
/// The arm64 dialect.
[[nodiscard]] std::vector<ParsedArg> parse_aarch64(std::string_view text);
/// The riscv64 dialect.
[[nodiscard]] std::vector<ParsedArg> parse_riscv64(std::string_view text);

}  // namespace usdt::parsers
