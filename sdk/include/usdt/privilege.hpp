// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "usdt/result.hpp"

namespace usdt {

/// no_permission naming the capabilities this process lacks for loading and attaching probe programs: CAP_BPF and
/// CAP_PERFMON (5.8, commits 2c78ee898d8f and 980737282232), or CAP_SYS_ADMIN for both.
[[nodiscard]] Result<void> check_privilege();

}  // namespace usdt
