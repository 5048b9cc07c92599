// SPDX-License-Identifier: BSD-2-Clause
// usdt-list --members: where the members of a type are.
#pragma once

#include "flags.hpp"

namespace usdt_list {

/// Prints the layout of Flags::members; the exit code.
[[nodiscard]] int run_members(const Flags& flags);

}  // namespace usdt_list
