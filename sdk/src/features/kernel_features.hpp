// SPDX-License-Identifier: BSD-2-Clause
// What the kernel can do at its own functions, found out by doing it. Private to features/.
#pragma once

#include "usdt/features.hpp"

namespace usdt::features {

/// Feature::kprobe_multi and those after it.
[[nodiscard]] FeatureState probe_kernel_function_feature(Feature feature);

}  // namespace usdt::features
