// SPDX-License-Identifier: BSD-2-Clause
// What is known of the compiler that wrote some debug information, and of what it was told. Private to dwarf/.
#pragma once

#include "dwarf/die.hpp"

namespace usdt::dwarf {

/// The version of DWARF that the unit of `die` is written in; 0 if it cannot be told.
[[nodiscard]] unsigned unit_version(Dwarf_Die die);
/// The compiler, as the unit of `die` names it; empty: it names none.
[[nodiscard]] std::string_view producer_of(Dwarf_Die die);
[[nodiscard]] bool is_clang(Dwarf_Die die);
[[nodiscard]] bool is_rust(Dwarf_Die die);
/// By what GCC was told and how it tells of the function's variables, or what Clang says of functions it optimises;
/// false where that is not known.
[[nodiscard]] bool is_unoptimised(Dwarf_Die function);
/// Clang says of functions it optimises, and of no others, that all calls they make are described.
[[nodiscard]] bool is_optimised(Dwarf_Die function);

/// Whether the dialect of C++ has functions with conditions ("requires"), by what GCC was told.
[[nodiscard]] bool has_conditions(Dwarf_Die die);

/// Whether the compiler took exported functions for ones that another file may replace: GCC with -fPIC.
[[nodiscard]] bool is_replaceable(Dwarf_Die function);

/// Whether the compiler saw other units with this one: GCC's link-time optimisation. Of Clang's nothing tells.
[[nodiscard]] bool is_linked_as_whole(Dwarf_Die die);
/// Whether its code is made by GCC's link-time optimisation, whose units are called <artificial>.
[[nodiscard]] bool is_made_at_link_time(Dwarf_Die die);
/// Whether the parameters and the result of a function would be told if it had any: not of units with line tables alone
/// (-g1, -gline-tables-only, rustc's debuginfo=1). `by_unit`: if has_types() says so of the unit it is declared in.
enum class SignatureTold : std::uint8_t { yes, no, by_unit };
[[nodiscard]] SignatureTold signature_told(Dwarf_Die function);
/// Whether a unit is not optimised, by how its variables are told of: nearly all by one place, a slot. Rust's compiler
/// does not say what it was told; of its units of three programs 25 to 75 variables are so for each that has a list at
/// opt-level 0, and less than one at any other.
[[nodiscard]] bool looks_unoptimised(Dwarf_Die unit);
/// Whether a unit tells the type of anything.
[[nodiscard]] bool has_types(Dwarf_Die unit);

/// Whether the unit's lists tell all values that a variable has at one address, one after the other: GCC's since
/// version 8, but not those of link-time optimisation.
[[nodiscard]] bool tells_each_value(Dwarf_Die die);

}  // namespace usdt::dwarf
