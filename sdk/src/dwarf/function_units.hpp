// SPDX-License-Identifier: BSD-2-Clause
// Finds the units that can have functions of some names. Private to dwarf/.
#pragma once

#include <optional>

#include "dwarf/debug_files.hpp"
#include "dwarf/function_index.hpp"
#include "dwarf/functions.hpp"
#include "usdt/stop.hpp"

namespace usdt::dwarf {

/// Finds units by names of functions, and remembers the index of all once it was made.
class FunctionUnits {
 public:
  /// `files` outlives this.
  explicit FunctionUnits(const DebugFiles& files) : files_(files) {}

  /// The units of `main` that may have code of a function that is `wanted`. `hint`: what is known of their names; null:
  /// nothing.
  [[nodiscard]] UnitSet with(const WantedFunction& wanted, const NameHint* hint, const StopToken& stop);
  /// The units of `main` with definitions that have names of `hint`, whether or not their code is in the file.
  [[nodiscard]] UnitSet naming(const NameHint& hint, const StopToken& stop) const;

 private:
  /// Makes the index of all units; or of those that `filter`, if it is not null, lets through.
  [[nodiscard]] FunctionIndex make_index(const StopToken& stop, const NameFilter* filter) const;
  /// Returns the index of all units, from the cache if it is there. Nothing: it was stopped.
  [[nodiscard]] std::optional<FunctionIndex> find_index(const StopToken& stop) const;
  /// Called now and then: what was read of the sections is not needed soon.
  [[nodiscard]] FunctionIndex::LetGo let_go() const;

  const DebugFiles& files_;
  std::optional<FunctionIndex> index_;
};

}  // namespace usdt::dwarf
