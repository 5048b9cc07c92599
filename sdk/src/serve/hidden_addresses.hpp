// SPDX-License-Identifier: BSD-2-Clause
// What clients are not told of the kernel. Private to serve/.
#pragma once

#include <string>
#include <string_view>

#include "usdt/result.hpp"

namespace usdt::serve {

/// The text without addresses of the kernel. The verifier writes those of maps into its log for whoever has
/// CAP_PERFMON, which clients have not: with them they would know where in the kernel lies what they have written.
[[nodiscard]] std::string without_addresses(std::string_view text);
[[nodiscard]] Error without_addresses(const Error& error);

}  // namespace usdt::serve
