// SPDX-License-Identifier: BSD-2-Clause
#include "locate/typed_place.hpp"

#include <memory>
#include <string>
#include <utility>

#include "dwarf/base_types.hpp"

namespace usdt::locate {

Arg argument_at(Located&& located, Declaration&& declaration) {
  return {.type = located.type,
          .location = std::move(located.location),
          .source = {},
          .declaration = std::make_shared<const Declaration>(std::move(declaration))};
}

void refuse_number(const Types& types, Dwarf_Die variable, const std::optional<Dwarf_Die>& declared_type,
                   Located& located) {
  const BaseType number = types.number_of(declared_type);
  std::string reason = number.no_number;
  if (number.swapped || is_swapped(variable)) reason = "a big-endian number that is in no struct";
  if (!reason.empty()) located = arch::nowhere(located.type, std::move(reason));
}

}  // namespace usdt::locate
