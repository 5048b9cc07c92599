// SPDX-License-Identifier: BSD-2-Clause
// Entries that were handed out, and the numbers that stand for them. Private to dwarf/.
#pragma once

#include <elfutils/libdw.h>

#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "dwarf/function_info.hpp"
#include "usdt/type_graph.hpp"

namespace usdt::dwarf {

/// An instance that was handed out, and the function whose code it is in (itself, unless it is inlined).
struct KnownDie {
  Dwarf_Die die;
  Dwarf_Die function;
};

/// The instances that were handed out.
class KnownDies {
 public:
  [[nodiscard]] DieId id_of(const Dwarf_Die& die, const Dwarf_Die& function) {
    const auto [at, is_new] = ids_.try_emplace(die.addr, static_cast<DieId>(dies_.size()));
    if (is_new) dies_.push_back({die, function});
    return at->second;
  }
  /// Nothing: that was not handed out.
  [[nodiscard]] std::optional<KnownDie> find(DieId id) const {
    const auto number = static_cast<std::size_t>(id);
    return number < dies_.size() ? std::optional(dies_[number]) : std::nullopt;
  }

 private:
  std::vector<KnownDie> dies_;  ///< by DieId
  std::unordered_map<const void*, DieId> ids_;
};

/// A type that was handed out: a DIE, of an array what is behind its first `dimension` dimensions. `swapped`: an enum,
/// or an array of some, in a struct whose numbers are in the other byte order, which GCC before 13 says of them alone.
struct KnownType {
  Dwarf_Die die;
  unsigned dimension;
  bool swapped = false;
};

/// The types that were handed out.
class KnownTypes {
 public:
  /// The type's number; `none` where there is no type.
  [[nodiscard]] TypeId id_of(const std::optional<Dwarf_Die>& die, unsigned dimension = 0, bool swapped = false) {
    if (!die) return TypeId::none;
    const auto [at, is_new] =
        ids_.try_emplace(std::tuple(die->addr, dimension, swapped), static_cast<TypeId>(types_.size()));
    if (is_new) types_.push_back({*die, dimension, swapped});
    return at->second;
  }
  /// Null: that was not handed out.
  [[nodiscard]] const KnownType* find(TypeId id) const {
    const auto number = static_cast<std::size_t>(id);
    return number < types_.size() ? &types_[number] : nullptr;
  }

 private:
  std::vector<KnownType> types_;  ///< by TypeId
  std::map<std::tuple<const void*, unsigned, bool>, TypeId> ids_;
};

}  // namespace usdt::dwarf
