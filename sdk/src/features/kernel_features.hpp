// SPDX-License-Identifier: BSD-2-Clause
// What the kernel can do at its own functions, found out by doing it.
#pragma once

#include <string_view>

#include "usdt/features.hpp"

namespace usdt::features {

/// A function of every kernel with trampolines, made to attach them to (net/bpf/test_run.c, 5.5): nothing calls it but
/// BPF_PROG_TEST_RUN.
inline constexpr std::string_view kTestFunction = "bpf_fentry_test1";

/// Feature::kprobe_multi and those after it.
[[nodiscard]] FeatureState probe_kernel_function_feature(Feature feature);

}  // namespace usdt::features
