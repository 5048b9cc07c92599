// SPDX-License-Identifier: BSD-2-Clause
#include "io/number_text.hpp"

#include <fmt/format.h>

#include <cmath>

namespace usdt::io {

std::string duration_text(double nanoseconds) {
  const double size = std::abs(nanoseconds);
  if (size < 1e3) return fmt::format("{}ns", nanoseconds);
  if (size < 1e6) return fmt::format("{:.6g}us", nanoseconds / 1e3);
  if (size < 1e9) return fmt::format("{:.6g}ms", nanoseconds / 1e6);
  return fmt::format("{:.6g}s", nanoseconds / 1e9);
}

std::string percent_text(double share) {
  const double percent = share * 100;
  return fmt::format("{:.{}f} %", percent, percent >= 10 ? 0 : percent >= 1 ? 1 : 2);
}

}  // namespace usdt::io
