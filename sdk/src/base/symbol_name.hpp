// SPDX-License-Identifier: BSD-2-Clause
// Marks that compilers leave in the names of symbols. Private to the library.
#pragma once

#include <string_view>

namespace usdt {

/// "work.cold", "work.part.0.cold.1", "work(int) [clone .cold]", "work.__part.1": code of another function that the
/// compiler put elsewhere, to which that one jumps. Nobody calls it: at its start the top of the stack is some variable
/// of that function, and no return address.
[[nodiscard]] bool is_cold_half(std::string_view symbol) noexcept;
/// "work" for "work.cold.1": the symbol of the function that this is a piece of; empty: it is none.
[[nodiscard]] std::string_view other_half(std::string_view symbol) noexcept;
/// "work.part.0", "work.constprop.1", "work.isra.0": a function that the compiler made of another one for callers that
/// it knows, so that nothing but calls and jumps of this very file lead to it.
[[nodiscard]] bool is_clone(std::string_view symbol) noexcept;

/// ".part", ".cold", ".actor", ".resume", ".destroy", ".cleanup": the text that a compiler put behind the name of a
/// function to name a piece of it. The piece runs when the rest leads there, or when a coroutine goes on, and not when
/// the function is called. Empty: the symbol has none of them. Languages whose own names have dots (Go, Zig) may call a
/// function so.
[[nodiscard]] std::string_view piece_suffix(std::string_view symbol) noexcept;

}  // namespace usdt
