// SPDX-License-Identifier: BSD-2-Clause
// Places and types as a signature has them. Private to locate/.
#pragma once

#include <elfutils/libdw.h>

#include <optional>

#include "dwarf/types.hpp"
#include "locate/entries.hpp"
#include "locate/locator.hpp"
#include "usdt/arg.hpp"

namespace usdt::locate {

[[nodiscard]] Arg argument_at(Located&& located, Declaration&& declaration);

/// Takes the place away from what is no number that a place can be read as.
void refuse_number(const Types& types, Dwarf_Die variable, const std::optional<Dwarf_Die>& declared_type,
                   Located& located);

}  // namespace usdt::locate
