// SPDX-License-Identifier: BSD-2-Clause
// What the names of symbols say. Private to the library.
#pragma once

#include <string_view>

namespace usdt {

/// "work.cold", "work.part.0.cold.1", "work(int) [clone .cold]": the unlikely half of another function, which jumps
/// there. Nobody calls it: at its start the top of the stack is some variable of that function, and no return address.
[[nodiscard]] bool is_cold_half(std::string_view symbol) noexcept;
/// "work" for "work.cold.1": the symbol of the function whose unlikely half this is; empty: it is none.
[[nodiscard]] std::string_view other_half(std::string_view symbol) noexcept;

/// ".part", ".cold", ".actor", ".resume", ".destroy", ".cleanup": what a compiler put behind the name of a function to
/// name a piece of it. That piece runs when the rest leads there, or when a coroutine goes on, and not when the
/// function is called. Empty: the symbol has none of them. Languages whose own names have dots (Go, Zig) may call a
/// function so.
[[nodiscard]] std::string_view piece_suffix(std::string_view symbol) noexcept;

}  // namespace usdt
