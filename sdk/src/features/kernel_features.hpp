// SPDX-License-Identifier: BSD-2-Clause
// The function to try trampolines on.
#pragma once

#include <string_view>

#include "usdt/features.hpp"

namespace usdt::features {

/// A function of every kernel with trampolines, made to attach them to (net/bpf/test_run.c, 5.5): nothing calls it but
/// BPF_PROG_TEST_RUN.
inline constexpr std::string_view kTestFunction = "bpf_fentry_test1";

}  // namespace usdt::features
