// SPDX-License-Identifier: BSD-2-Clause
// Whether what lists say of parameters at a function's first instruction can be what was passed. Private to locate/.
#pragma once

#include <vector>

#include "arch/user_calls.hpp"
#include "locate/moment.hpp"
#include "locate/stated_place.hpp"

namespace usdt::locate {

/// Contradictions between the stated places of parameters and the calling convention.
struct Contradictions {
  std::vector<bool> assigned;  ///< by parameter: what is told of it may be a value that the function gave it
  bool convention = false;     ///< the function is called otherwise than by `places`
};

/// `places` are those of the calling convention, by parameter; empty: it is not known. `result_by_address`: the address
/// of the room for the result may be passed before the parameters.
[[nodiscard]] Contradictions contradictions(const Moment& moment, const std::vector<StatedPlace>& told,
                                            const std::vector<arch::UserPlace>& places, bool result_by_address);

}  // namespace usdt::locate
