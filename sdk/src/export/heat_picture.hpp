// SPDX-License-Identifier: BSD-2-Clause
// A heat map as lines of characters: a histogram for each stretch of time, side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "usdt/view.hpp"

namespace usdt::exports {

/// The area of a picture, and the time that it shows.
struct HeatFrame {
  std::size_t width = 80, height = 24;  ///< columns and lines
  std::int64_t from = 0, to = 0;        ///< what of time is shown
  bool blocks = false;                  ///< by block characters (UTF-8), else by ASCII ones
};
/// Part of a line: of cells how hot they are, of anything else 0.
struct HeatPart {
  std::string text;
  unsigned level = 0;
};
inline constexpr unsigned kHeatLevels = 5;

/// The largest values on top, time from left to right; then what the characters mean.
[[nodiscard]] std::vector<std::vector<HeatPart>> draw(const HeatMap& map, const View& view, const HeatFrame& frame);

}  // namespace usdt::exports
