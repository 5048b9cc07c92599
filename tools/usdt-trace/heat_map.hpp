// SPDX-License-Identifier: BSD-2-Clause
// How often a value was in each range, by time: a histogram for each stretch of it, side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "view.hpp"

namespace usdt_trace {

/// Hits of one stretch of time.
struct HeatSlice {
  std::int64_t from = 0, to = 0;                   ///< time of day, ns
  std::map<std::int64_t, std::uint64_t> counts;    ///< by the key of log2_buckets(); none is 0
  std::optional<usdt::ExpressionType> reals = {};  ///< TableColumn::ranges_of
};

/// Cuts what a table counts, which only grows, into stretches of time.
class HeatSlicer {
 public:
  explicit HeatSlicer(std::int64_t from) : from_(from) {}
  /// What came since the last cut. `rows`: those of `table` by now.
  [[nodiscard]] HeatSlice cut(const usdt::PlannedTable& table, const std::vector<usdt::TableRow>& rows,
                              std::int64_t to);
  /// Nothing came until `from`.
  void begin(std::int64_t from) { from_ = from; }

 private:
  std::int64_t from_;
  std::map<std::int64_t, std::uint64_t> before_;
};

/// The slices so far; neighbours share one where there are more than anybody looks at.
class HeatMap {
 public:
  void add(HeatSlice slice);
  [[nodiscard]] const std::vector<HeatSlice>& slices() const noexcept { return slices_; }

 private:
  std::vector<HeatSlice> slices_;
};

/// Where it is drawn.
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

}  // namespace usdt_trace
