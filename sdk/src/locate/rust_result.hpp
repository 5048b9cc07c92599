// SPDX-License-Identifier: BSD-2-Clause
// Where functions of Rust leave their results. Private to locate/.
//
// Rust's own calling convention is not written down. It depends on what rustc makes of a type (rustc_abi's layout.rs,
// rustc_ty_utils' abi.rs): one scalar, two, or an aggregate. Debug information does not tell which, but has the members
// and discriminants that decide it. Where versions of rustc differ and the type does not show which rule held, and
// where something is not known (unions, vectors), the place is unknown.
#pragma once

#include <string>

#include "arch/user_calls.hpp"
#include "dwarf/types.hpp"
#include "locate/entries.hpp"

namespace usdt::locate {

struct RustResult {
  arch::UserPlace place;
  std::string reason = {};  ///< why it is unknown
  /// By Rust's own convention it is in memory of the caller, whose address is not handed back; `place` is that of a
  /// function of C (extern "C"), which debug information does not tell apart.
  bool only_of_c = false;
  bool in_low = false;   ///< it takes the first of the two result registers
  bool in_high = false;  ///< and the second
  /// One of its registers has a flag, of which optimised code leaves one bit, and anything in the others; how code is
  /// compiled, Rust does not tell.
  bool has_flag = false;
  bool only_rust_has = false;  ///< a function of C, which debug information does not tell apart, would pack it in one
};

/// The place of a Rust function's result on x86-64.
[[nodiscard]] RustResult rust_result(const Types& types, const arch::Arch& arch, Dwarf_Die function);

}  // namespace usdt::locate
