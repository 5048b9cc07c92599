// SPDX-License-Identifier: BSD-2-Clause
// The argument text of a stapsdt note -> ArgSpec values. No X3 type appears in any header; each dialect is
// one grammar in one .cpp (x86_att.cpp, aarch64.cpp).
#pragma once

#include <string_view>
#include <vector>

#include "usdt/arg.hpp"
#include "usdt/machine.hpp"

namespace usdt::parsers {

/// Every argument of `text` in its order, one entry each, however odd; never fails as a whole. Arguments are
/// separated by white space, except inside brackets or parentheses and around arm64 commas. An empty text, or
/// one that starts with ':' (a systemtap marker for "no arguments"), has none.
[[nodiscard]] std::vector<ArgSpec> parse_args(std::string_view text, Machine machine);

/// The AT&T dialect of x86-64 and i386.
[[nodiscard]] std::vector<ArgSpec> parse_x86_att(std::string_view text);
/// The arm64 dialect.
[[nodiscard]] std::vector<ArgSpec> parse_aarch64(std::string_view text);

}  // namespace usdt::parsers
