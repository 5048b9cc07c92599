// SPDX-License-Identifier: BSD-2-Clause
// The parameters and local variables of a function, as debug information lists them. Private to locate/.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "dwarf/budget.hpp"
#include "locate/entries.hpp"
#include "usdt/address.hpp"
#include "usdt/stop.hpp"

namespace usdt::locate {

/// A parameter as declared, and its DIE in the instance, which may lack one.
struct Parameter {
  Dwarf_Die declared;
  std::optional<Dwarf_Die> here;
};

/// Limits of the reading of entries, some of which may be missing then.
struct ReadingEnds {
  const StopToken& stop;
  Budget& budget;
};

/// The parameters of an instance, which lists those of its declaration except any of which nothing is left. `varargs`
/// is set if more may be passed.
[[nodiscard]] std::vector<Parameter> parameters_of(Dwarf_Die instance, const ReadingEnds& ends, bool& varargs);

/// Whether the source cannot give it another value than the one that was passed: `this`, references, what is const.
[[nodiscard]] bool is_never_assigned(Dwarf_Die parameter);

/// Variables of `scope` and of the blocks in it that have `pc`, declared before `line`; the innermost of a name stays.
[[nodiscard]] std::vector<Parameter> locals_of(Dwarf_Die scope, VirtAddr pc, std::uint32_t line,
                                               const ReadingEnds& ends);

}  // namespace usdt::locate
