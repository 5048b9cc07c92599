// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <vector>

#include "kernel/catalogue.hpp"

namespace usdt::kernel {

/// select_kernel() with lists of the caller's.
[[nodiscard]] Result<KernelSelection> select_from(const Sources& sources, const std::vector<KernelPattern>& patterns,
                                                  const KernelSelectOptions& options = {});

}  // namespace usdt::kernel
