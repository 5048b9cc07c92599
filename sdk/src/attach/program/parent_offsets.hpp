// SPDX-License-Identifier: BSD-2-Clause
// Tells questions where the kernel keeps whose child a process is.
#pragma once

#include "expr/compile.hpp"

namespace usdt::backends {

/// Finds where this kernel has a process's parent. Without BTF that stays unknown.
[[nodiscard]] expr::ParentOffsets find_parents();

}  // namespace usdt::backends
