// SPDX-License-Identifier: BSD-2-Clause
// Events put together in bounded memory, however many there are: numbers counted in buckets, a heat grid whose steps
// grow with the time that it has to show, spans of which those that say most are kept, and values counted by their
// text. Sums and counts are exact; how much was left out is known.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "export/text_hash.hpp"
#include "expr/numbers.hpp"
#include "usdt/int128.hpp"
#include "usdt/view.hpp"

namespace usdt::exports::report {

/// Returns the key of the bucket of log2_buckets() that `number` is in.
[[nodiscard]] std::int64_t log2_key(expr::Number number, unsigned sub_bits);

/// Whole numbers, counted in the buckets that View::latency has.
class NumberCounts {
 public:
  void add(expr::Number number);
  void add(const NumberCounts& other);
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] const Int128& sum() const noexcept { return sum_; }
  /// Returns them as a row of such a table: percentiles are at most 1/16 too large, all else is exact.
  [[nodiscard]] ArrangedRow row() const;

 private:
  std::map<std::int64_t, std::uint64_t> counts_;  ///< by log2_key()
  std::uint64_t count_ = 0;
  Int128 sum_ = 0, minimum_ = 0, maximum_ = 0;
};

/// Counts what happened by time and by a number. Columns are steps of time, all of one length, which doubles whenever
/// there would be more of them than may be.
class HeatGrid {
 public:
  using Column = std::map<std::int64_t, std::uint64_t>;  ///< counts by row

  explicit HeatGrid(std::size_t most_columns) noexcept : most_(most_columns) {}

  /// Counts one at `time`, ns, whichever came before.
  void add(std::uint64_t time, std::int64_t row);
  /// Returns the columns that have anything, by number: the one with number n begins at n * step().
  [[nodiscard]] const std::map<std::uint64_t, Column>& columns() const noexcept { return columns_; }
  /// Returns the length of a step, ns: a power of 2.
  [[nodiscard]] std::uint64_t step() const noexcept { return std::uint64_t{1} << shift_; }

 private:
  void double_step();

  std::size_t most_;
  unsigned shift_ = 0;
  std::map<std::uint64_t, Column> columns_;
  std::uint64_t latest_ = 0;  ///< number of the column that was added to last,
  Column* column_ = nullptr;  ///< and that column
};

/// The first so many heat maps of values know their spans.
inline constexpr std::size_t kRowsOfSpans = 4;
inline constexpr std::int16_t kNoRow = INT16_MIN;
inline constexpr std::array<std::int16_t, kRowsOfSpans> kNoRows = {kNoRow, kNoRow, kNoRow, kNoRow};

/// A call, span or hit that is shown by itself.
struct KeptSpan {
  std::uint64_t begin = 0;     ///< ns
  std::uint64_t duration = 0;  ///< ns; 0: a hit
  std::uint32_t thread = 0;    ///< by number
  std::uint32_t probe = 0;     ///< of the plan
  std::string values = {};
  /// Where its values are in heat maps: by number of the heat map; kNoRow: there is none.
  std::array<std::int16_t, kRowsOfSpans> rows = kNoRows;
};

/// Keeps spans while there is room; when there is none, the longest of each thread, stretch of time and power of two of
/// the duration, so that what is unusual stays and every part of the picture has something.
class KeptSpans {
 public:
  /// Keeps at most `most` of them.
  explicit KeptSpans(std::size_t most) : most_(most) {}

  void add(KeptSpan span);
  /// Returns how many were added.
  [[nodiscard]] std::uint64_t added() const noexcept { return added_; }
  /// Ends the choice, evenly over all of the time, and returns those that are kept, in the order of time.
  [[nodiscard]] std::vector<KeptSpan> take();

 private:
  void fold();

  std::size_t most_;
  std::uint64_t added_ = 0;
  unsigned shift_ = 0;  ///< a stretch of time is so many bits of ns
  std::vector<KeptSpan> spans_;
};

/// Counts texts, each exactly, and those together that there is no room for.
class TextCounts {
 public:
  struct Counted {
    std::uint64_t count = 0;
    Int128 duration = 0;  ///< ns, of all of them
  };

  explicit TextCounts(std::size_t most) noexcept : most_(most) {}
  void add(std::string_view text, std::uint64_t duration);
  /// Returns those that are counted apart, most frequent first.
  [[nodiscard]] std::vector<std::pair<std::string_view, Counted>> ranked() const;
  /// Returns what is counted of all others together.
  [[nodiscard]] const Counted& others() const noexcept { return others_; }

 private:
  std::size_t most_;
  TextTable<Counted> counts_;
  Counted others_;
};

}  // namespace usdt::exports::report
