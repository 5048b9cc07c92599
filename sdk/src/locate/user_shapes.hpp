// SPDX-License-Identifier: BSD-2-Clause
// Tells how values of a type are passed: by which rules of calling conventions, and of which scalars they are made.
// Private to locate/.
#pragma once

#include <cstdint>
#include <optional>

#include "arch/user_calls.hpp"
#include "dwarf/names.hpp"
#include "dwarf/types.hpp"
#include "locate/entries.hpp"

namespace usdt::locate {

/// Makes shapes of types.
class UserShapes {
 public:
  /// All of them outlive this.
  UserShapes(const Types& types, ScopeNames& names, const arch::Arch& arch)
      : types_(types), names_(names), arch_(arch) {}

  [[nodiscard]] arch::UserShape of(const std::optional<Dwarf_Die>& die, Language language) const;

 private:
  void flatten(arch::UserShape& shape, Dwarf_Die resolved, std::uint64_t offset, unsigned depth,
               std::uint64_t& steps) const;
  void flatten_members(arch::UserShape& shape, Dwarf_Die structure, std::uint64_t offset, unsigned depth,
                       std::uint64_t& steps) const;
  [[nodiscard]] bool is_of_library(Dwarf_Die structure) const;
  void flatten_scalar(arch::UserShape& shape, Dwarf_Die resolved, std::uint64_t offset) const;
  void flatten_vector(arch::UserShape& shape, Dwarf_Die resolved, std::uint64_t offset) const;
  [[nodiscard]] arch::UserShape::Kind passed_as(Dwarf_Die structure, Language language, unsigned depth = 0) const;

  const Types& types_;
  ScopeNames& names_;
  const arch::Arch& arch_;
};

}  // namespace usdt::locate
