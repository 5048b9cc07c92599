// SPDX-License-Identifier: BSD-2-Clause
// Tells questions where the kernel keeps whose child a process is.
#pragma once

#include "expr/compile.hpp"

namespace usdt::backends {

/// Finds where this kernel has a process's parent. Without BTF that stays unknown, and in a nested pid namespace, where
/// the numbers that the kernel has there are others than /proc's.
[[nodiscard]] expr::ParentOffsets find_parents();

}  // namespace usdt::backends
