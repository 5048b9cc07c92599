// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>
#include <string_view>

namespace usdt::tools {

/// Returns what --version prints: "usdt-trace 1.0.0", and below it the compilers and libraries that it was built with,
/// for who reports a fault.
[[nodiscard]] std::string version_text(std::string_view tool);

}  // namespace usdt::tools
