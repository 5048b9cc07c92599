// SPDX-License-Identifier: BSD-2-Clause
// Sites told apart by address, so that many share one attach cookie. Private to the library.
#pragma once

#include <cstddef>

#include "usdt/carrier.hpp"
#include "usdt/plan.hpp"

namespace usdt::carry {

/// Applies CarrierOptions::share_cookies to the links of files.
void share_cookies(CarrierPlan& made);

/// How many attach cookies the sites of files then need, about: one for each that share the low 12 bits of their
/// address. (What programs it is loaded as may divide them further.)
[[nodiscard]] std::size_t shared_cookies(const AttachPlan& plan);

}  // namespace usdt::carry
