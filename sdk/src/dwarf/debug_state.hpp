// SPDX-License-Identifier: BSD-2-Clause
// Keeps what is open and remembered of a program's debug information. Private to dwarf/.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "dwarf/budget.hpp"
#include "dwarf/clones.hpp"
#include "dwarf/debug_files.hpp"
#include "dwarf/function_units.hpp"
#include "dwarf/go_type_list.hpp"
#include "dwarf/handed_out.hpp"
#include "dwarf/names.hpp"
#include "dwarf/type_names.hpp"
#include "dwarf/units.hpp"
#include "elf/demangle.hpp"
#include "usdt/error.hpp"
#include "usdt/result.hpp"
#include "usdt/stop.hpp"

namespace usdt::dwarf {

/// A function of a unit, and where its code begins.
struct DieEntry {
  VirtAddr pc;
  Dwarf_Die die;
};

/// A call that debug information tells of.
struct MergedCall {
  VirtAddr pc;         ///< within the call
  const void* callee;  ///< the declaration
  bool merged;         ///< it is at line 0: the compiler made it one of several
};

/// The types that were handed out, and the names by which others are found.
struct TypeState {
  KnownTypes known;
  std::optional<TypeNames> names;               ///< of all units
  ByUnit<std::optional<TypeNames>> unit_names;  ///< nothing: that unit's cannot be read
  std::optional<GoTypes> go_types;
};

/// The state of DebugInfo. All but `files` and `stop` belongs to whoever holds `mutex`, and so do libdw's caches.
struct DebugState {
  /// `stop_token` ends all that is read later, too.
  DebugState(DebugFiles opened, StopToken stop_token);

  const DebugFiles files;
  const StopToken stop;

  std::mutex mutex;
  Budget shared_reads;  ///< for what any number of functions may share: what they are instances of, lists of ranges
  ScopeNames names;
  elf::Demangler demangler{std::size_t{1} << 24};
  UnitsByAddress units;
  FunctionUnits function_units;
  KnownDies dies;
  TypeState types;
  ByUnit<std::vector<DieRange>> function_ranges;   ///< sorted by start
  ByUnit<std::vector<DieEntry>> function_entries;  ///< sorted
  ByUnit<std::vector<MergedCall>> calls;           ///< in functions of the unit, which lead to known functions

  [[nodiscard]] const CodeNames& code_names();
  /// Returns where the code of a function, an inlined copy or a block begins.
  [[nodiscard]] std::optional<VirtAddr> entry_of(Dwarf_Die die);
  /// Nothing but once it was stopped, or what functions share is spent.
  [[nodiscard]] Result<void> may_read_on() const;
  /// Why names are not to be had, once they are spent (ScopeNames).
  [[nodiscard]] Error names_spent() const;

 private:
  std::optional<CodeNames> symbols_;
};

}  // namespace usdt::dwarf
