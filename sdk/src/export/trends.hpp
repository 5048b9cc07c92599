// SPDX-License-Identifier: BSD-2-Clause
// The latest hits a second of each row of a table, as pictures of one line.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "usdt/view.hpp"

namespace usdt::exports {

/// Keeps what rows had at the last looks.
class Trends {
 public:
  static constexpr std::size_t kMostLooks = 20;

  /// Takes the rates of a look, by the first `keys` keys of each row. Rows that were in none of the last looks are
  /// forgotten.
  void look(const std::vector<ArrangedRow>& rows, std::size_t keys);
  /// Returns how many looks there are pictures of.
  [[nodiscard]] std::size_t width() const noexcept;
  /// Returns the picture of a row: a block for each look, the newest last, as high as its part of the row's highest; a
  /// blank for a look without hits.
  [[nodiscard]] std::string picture(const ArrangedRow& row, std::size_t keys) const;

 private:
  /// The rates of the last looks, each at its number modulo their count.
  struct History {
    std::array<double, kMostLooks> rates = {};
    std::uint64_t seen = 0;  ///< the latest look with a hit
  };
  using Keys = std::vector<TableKey>;

  std::map<Keys, History> rows_;
  std::uint64_t looks_ = 0;  ///< so far
};

}  // namespace usdt::exports
