// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <vector>

#include "kernel/catalogue.hpp"

namespace usdt::kernel {

/// Selects what the patterns mean by these lists. `skip_unknown`: SearchScope::skip_unknown.
/// Errors: not_found (no function of that name, with names like it; a glob nothing matches), no_permission or
/// not_supported where the lists cannot be had, each with what to do. A function that exists but cannot be attached to
/// is no error but in `refused`.
[[nodiscard]] Result<KernelSelection> select_from(const Sources& sources, const std::vector<KernelPattern>& patterns,
                                                  bool skip_unknown = false);

}  // namespace usdt::kernel
