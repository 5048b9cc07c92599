// SPDX-License-Identifier: BSD-2-Clause
#include "export/heat_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <set>
#include <string_view>
#include <utility>

#include "export/table_words.hpp"

namespace usdt::exports {
namespace {

using Levels = std::array<std::uint64_t, kHeatLevels>;  ///< the smallest number of each

/// "14:03:07"
std::string clock_text(std::int64_t wall) {
  const auto second = static_cast<std::time_t>(wall / 1'000'000'000);
  std::tm local{};
  ::localtime_r(&second, &local);
  return fmt::format("{:02}:{:02}:{:02}", local.tm_hour, local.tm_min, local.tm_sec);
}

/// By equal factors from 1 to the most, so that single hits are seen beside thousands.
Levels levels_up_to(std::uint64_t most) {
  Levels levels{};
  for (unsigned i = 0; i < kHeatLevels; ++i) {
    const double share = static_cast<double>(i) / kHeatLevels;
    levels[i] = static_cast<std::uint64_t>(std::llround(std::pow(static_cast<double>(most), share)));
  }
  for (unsigned i = 1; i < kHeatLevels; ++i) levels[i] = std::max(levels[i], levels[i - 1] + 1);
  return levels;
}

class Drawing {
 public:
  Drawing(const HeatMap& map, const View& view, const HeatFrame& frame) : map_(map), view_(view), frame_(frame) {}

  std::vector<std::vector<HeatPart>> lines() {
    plain_line(view_.value + ", by time");
    if (!find_range()) {
      plain_line("no hits");
      return std::move(lines_);
    }
    place();
    for (std::size_t row = cells_.size(); row-- > 0;) draw_row(row);
    draw_axis();
    draw_legend();
    return std::move(lines_);
  }

 private:
  void plain_line(std::string text) { lines_.emplace_back().push_back({std::move(text)}); }

  /// Which keys have lines, and how many of them share one.
  bool find_range() {
    std::set<std::int64_t> keys;
    for (const HeatSlice& slice : map_.slices()) {
      if (slice.to <= frame_.from) continue;
      for (const auto& [key, count] : slice.counts) keys.insert(key);
    }
    if (keys.empty()) return false;
    // From 0 to where reals usually are there are a thousand ranges: of them only those that have hits are shown.
    if (!map_.slices().front().reals) {
      const std::int64_t last = *keys.rbegin();
      for (std::int64_t key = *keys.begin(); key < last; ++key) keys.insert(keys.end(), key);
    }
    keys_.assign(keys.begin(), keys.end());
    constexpr std::size_t around = 5;  // title, axis, legend, and room for the prompt
    const std::size_t room = std::max<std::size_t>(frame_.height, around + 4) - around;
    shared_ = (keys_.size() + room - 1) / room;
    rows_ = (keys_.size() + shared_ - 1) / shared_;
    return true;
  }

  void place() {
    for (std::size_t row = 0; row < rows_; ++row) label_ = std::max(label_, label(row).size());
    const std::size_t room = frame_.width > label_ + 12 ? frame_.width - label_ - 2 : 10;
    const double time = static_cast<double>(frame_.to) - static_cast<double>(frame_.from);
    const double interval = std::max(view_.interval.value_or(1), 1e-3) * 1e9;
    columns_ = static_cast<std::size_t>(std::clamp(std::round(time / interval), 1.0, static_cast<double>(room)));
    cells_.assign(rows_, std::vector<std::uint64_t>(columns_));
    for (const HeatSlice& slice : map_.slices()) {
      const double middle = (static_cast<double>(slice.from) + static_cast<double>(slice.to)) / 2;
      const double at = (middle - static_cast<double>(frame_.from)) / std::max(time, 1.0);
      if (at < 0) continue;
      const auto column =
          std::min(static_cast<std::size_t>(std::min(at, 1.0) * static_cast<double>(columns_)), columns_ - 1);
      for (const auto& [key, count] : slice.counts) {
        const auto line = static_cast<std::size_t>(std::ranges::lower_bound(keys_, key) - keys_.begin()) / shared_;
        std::uint64_t& cell = cells_[std::min(line, rows_ - 1)][column];
        cell += count;
        most_ = std::max(most_, cell);
      }
    }
    levels_ = levels_up_to(most_);
  }

  /// "[4K, 8K)"
  [[nodiscard]] std::string label(std::size_t row) const {
    const std::size_t first = row * shared_;
    const std::size_t last = std::min(first + shared_, keys_.size()) - 1;
    return range_text(view_, range_of(view_, map_.slices().front().reals, keys_[first], keys_[last]));
  }

  [[nodiscard]] unsigned level_of(std::uint64_t count) const {
    return static_cast<unsigned>(std::ranges::upper_bound(levels_, count) - levels_.begin());
  }
  [[nodiscard]] std::string_view sign_of(unsigned level) const {
    constexpr std::array<std::string_view, kHeatLevels + 1> kBlocks{" ", "·", "░", "▒", "▓", "█"};
    constexpr std::array<std::string_view, kHeatLevels + 1> kAscii{" ", ".", ":", "+", "#", "@"};
    return frame_.blocks ? kBlocks[level] : kAscii[level];
  }

  void draw_row(std::size_t row) {
    std::vector<HeatPart>& line = lines_.emplace_back();
    line.push_back({fmt::format("{:>{}}  ", label(row), label_)});
    for (const std::uint64_t count : cells_[row]) {
      const unsigned level = level_of(count);
      if (line.size() == 1 || line.back().level != level) line.push_back({{}, level});
      line.back().text += sign_of(level);
    }
  }

  /// From when to when: below the first column and the last, or in words where these are close together.
  void draw_axis() {
    const std::string from = clock_text(frame_.from);
    const std::string to = clock_text(frame_.to);
    if (columns_ <= from.size() + to.size()) return plain_line(fmt::format("{:>{}}  {} to {}", "", label_, from, to));
    const std::size_t gap = columns_ - from.size() - to.size();
    plain_line(fmt::format("{:>{}}  {}{:>{}}{}", "", label_, from, "", gap, to));
  }

  void draw_legend() {
    std::vector<HeatPart>& line = lines_.emplace_back();
    line.push_back({fmt::format("{:>{}}  hits:", "", label_)});
    for (unsigned level = 1; level <= kHeatLevels; ++level) {
      if (levels_[level - 1] > most_) break;
      line.push_back({" "});
      line.push_back({std::string(sign_of(level)), level});
      line.push_back({fmt::format(" {}", levels_[level - 1])});
    }
  }

  const HeatMap& map_;
  const View& view_;
  const HeatFrame& frame_;
  std::vector<std::int64_t> keys_;  ///< that have lines, the smallest first
  std::size_t shared_ = 1;          ///< keys of one line
  std::size_t rows_ = 0, columns_ = 0, label_ = 0;
  std::vector<std::vector<std::uint64_t>> cells_;  ///< by line, the smallest keys first
  std::uint64_t most_ = 0;
  Levels levels_{};
  std::vector<std::vector<HeatPart>> lines_;
};

}  // namespace

std::vector<std::vector<HeatPart>> draw(const HeatMap& map, const View& view, const HeatFrame& frame) {
  return Drawing(map, view, frame).lines();
}

}  // namespace usdt::exports
