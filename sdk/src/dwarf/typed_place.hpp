// SPDX-License-Identifier: BSD-2-Clause
// Places and types as a signature has them. Private to dwarf/.
#pragma once

#include <elfutils/libdw.h>

#include <optional>

#include "dwarf/locator.hpp"
#include "dwarf/types.hpp"
#include "usdt/arg.hpp"

namespace usdt::dwarf {

[[nodiscard]] Arg argument_at(Located&& located, Declaration&& declaration);

/// Takes the place away from what is no number that a place can be read as.
void refuse_number(const Types& types, Dwarf_Die variable, const std::optional<Dwarf_Die>& declared_type,
                   Located& located);

}  // namespace usdt::dwarf
