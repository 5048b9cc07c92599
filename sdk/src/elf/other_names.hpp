// SPDX-License-Identifier: BSD-2-Clause
// Names of languages whose manglings libiberty does not know, or not within bounds. Private to elf/.
#pragma once

#include <string>
#include <string_view>

namespace usdt::elf {

/// Whether `symbol` looks like one of D ("_D4main5serveFiZi") or of Free Pascal ("P$MAIN_$$_SERVE$LONGINT$$LONGINT").
[[nodiscard]] bool may_be_other_name(std::string_view symbol) noexcept;

/// "main.serve", "MAIN.SERVE": what of such a name comes before its parameters; empty: it is none. No longer than the
/// symbol for Pascal; for D, whose names refer to what stands before in them, no longer than `most` bytes.
[[nodiscard]] std::string other_name(std::string_view symbol, std::size_t most);

}  // namespace usdt::elf
