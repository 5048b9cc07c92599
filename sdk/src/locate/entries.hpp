// SPDX-License-Identifier: BSD-2-Clause
// The names by which entries are read (usdt::dwarf), of which nearly every line here speaks. Private to locate/.
#pragma once

#include "dwarf/die.hpp"

namespace usdt::locate {

using namespace dwarf;  // NOLINT(google-build-using-namespace): this room is about nothing else

}  // namespace usdt::locate
