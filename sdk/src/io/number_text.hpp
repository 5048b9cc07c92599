// SPDX-License-Identifier: BSD-2-Clause
// Numbers with their units, as people read them.
#pragma once

#include <string>

namespace usdt::io {

/// Writes "850ns", "12.345us", "3.75ms", "1.5s".
[[nodiscard]] std::string duration_text(double nanoseconds);
/// Writes "4.9 %", of 0.049.
[[nodiscard]] std::string percent_text(double share);

}  // namespace usdt::io
