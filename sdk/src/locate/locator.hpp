// SPDX-License-Identifier: BSD-2-Clause
// What DWARF expressions came to, as Locations. Private to locate/.
#pragma once

#include <algorithm>
#include <vector>

#include "arch/user_values.hpp"
#include "locate/location.hpp"

namespace usdt::locate {

using Located = arch::UserValue;

class Locator {
 public:
  explicit Locator(const arch::Arch& arch) : arch_(arch) {}

  /// The register with a DWARF number; `none`: this machine has no such register.
  [[nodiscard]] RegisterId id_of(unsigned reg) const {
    return reg < arch_.dwarf_registers.size() ? arch_.dwarf_registers[reg] : RegisterId::none;
  }
  /// The value that is in these pieces, whose sums count from registers and files only.
  [[nodiscard]] Located from_pieces(const std::vector<WherePiece>& pieces, Type type) const;

 private:
  [[nodiscard]] Location extended_by_sign(const Value& value, std::uint32_t size) const;
  [[nodiscard]] Location at_sum(const Sum& sum, bool is_value) const;
  /// The place of some bytes, whose type may get narrower: what is known of a number may be its low bytes and how they
  /// are extended.
  [[nodiscard]] Location location_of(const Where& where, Type& type) const;

  const arch::Arch& arch_;
};

}  // namespace usdt::locate
