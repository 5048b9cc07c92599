// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>

namespace usdt::test {

/// x86-64 assembly text with `count` probes as sys/sdt.h writes them, each with its nop and three arguments.
[[nodiscard]] std::string many_probes(int count);

}  // namespace usdt::test
