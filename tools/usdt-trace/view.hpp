// SPDX-License-Identifier: BSD-2-Clause
// What is shown of hits instead of each of them: rows of a table, or histograms.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "usdt/usdt.hpp"

namespace usdt_trace {

/// A number that is shown of each row.
enum class Shown : std::uint8_t { count, sum, average, minimum, maximum, distinct, p50, p90, p99, p999 };
enum class Histogram : std::uint8_t { none, log2, linear };

/// Buckets of --latency are a sixteenth as wide as their power of 2.
constexpr unsigned kLatencySubBits = 4;

/// What the options about tables ask for, and --slowest.
struct View {
  std::shared_ptr<const usdt::TableQuestion> question;  ///< null: no table
  std::vector<Shown> shown;                             ///< in the order of columns
  Histogram histogram = Histogram::none;                ///< the last key is a bucket
  bool folded = false;                                  ///< lines for flame graphs
  bool latency = false;                                 ///< it is one of durations, of which percentiles are shown
  bool heat_map = false;                                ///< it is shown by time
  unsigned sub_bits = 0;                                ///< of log2 buckets
  std::int64_t from = 0, to = 0, step = 0;              ///< of linear ones,
  unsigned digits = 0;                                  ///< so many digits of which are behind the decimal point
  std::string value;                                    ///< the expression, as it was written
  std::size_t top = SIZE_MAX;                           ///< rows that are shown
  std::optional<double> interval;                       ///< seconds from one look at it to the next
  bool rates = false;                                   ///< a column has hits a second,
  bool by_rate = false;                                 ///< which rows are ordered by
  std::size_t slowest = 0;                              ///< so many events are shown; 0: a table, or all of them
  bool in_flight = false;                               ///< these are beginnings of what has not ended
  /// Stacks are among the keys.
  bool user_stacks = false, kernel_stacks = false;
  [[nodiscard]] bool has_stacks() const { return user_stacks || kernel_stacks; }
  [[nodiscard]] bool has_buckets() const { return histogram != Histogram::none || latency; }
  /// Its numbers are nanoseconds: those of --latency, and of `duration` itself.
  [[nodiscard]] bool is_about_durations() const;
  /// The last key is not shown, but what rows are counted by (distinct), or a bucket.
  [[nodiscard]] bool folds_last_key() const {
    return has_buckets() || (!shown.empty() && shown.back() == Shown::distinct);
  }
  /// How many keys of a table are shown. That of a recording without a site, where no key has a type, has none at all.
  [[nodiscard]] std::size_t shown_keys(const usdt::PlannedTable& table) const {
    return table.keys.size() - (folds_last_key() && !table.keys.empty() ? 1 : 0);
  }
};

/// The options as they were written.
struct RawView {
  std::string by, sum, average, minimum, maximum, distinct, log2, linear, heat_map;
  unsigned sub_bits = 0;
  bool latency = false;
  bool folded = false;
  bool rate = false;
  std::uint32_t max_rows = 4096;
  std::optional<std::uint64_t> top;
  std::size_t slowest = 0;
  std::size_t in_flight = 0;
  std::optional<double> interval;
};

/// Errors: syntax, invalid_argument (options that do not go together).
[[nodiscard]] usdt::Result<View> parse_view(const RawView& raw);

/// What a bar of a histogram is about.
using Range = std::variant<usdt::Bucket, usdt::RealBucket>;
/// That with this key, and those up to `last`; `reals`: TableColumn::ranges_of.
[[nodiscard]] Range range_of(const View& view, const std::optional<usdt::ExpressionType>& reals, std::int64_t key,
                             std::int64_t last);

/// A row as it is shown: what a view folds is folded.
struct ShownRow : usdt::TableRow {
  std::uint64_t distinct = 0;
  bool distinct_at_least = false;  ///< some of the values were looked at as far as they are alike
  struct Bar {
    std::int64_t key;
    Range range;
    std::uint64_t count = 0;
  };
  std::vector<Bar> bars = {};  ///< in the order of numbers, without empty ones
  /// Of the value, of which the extremes are; nothing: there is none.
  std::optional<usdt::ExpressionType> type = {};
  std::optional<double> per_second = {};  ///< View::rates

  /// A number of reals; nothing: it is something else.
  [[nodiscard]] std::optional<double> real(Shown shown) const;
};

class Rates;

/// Rows in the order in which they are shown: those with the largest number in the first column first. `rates`: null:
/// they are not known.
[[nodiscard]] std::vector<ShownRow> arrange(const View& view, const usdt::PlannedTable& table,
                                            const std::vector<usdt::TableRow>& rows, const Rates* rates = nullptr);
/// "1234", "56.7", "0.42": hits a second.
[[nodiscard]] std::string rate_text(double per_second);

/// "COUNT", "SUM(size)"
[[nodiscard]] std::string header_of(Shown shown, const View& view);
/// Its digits.
[[nodiscard]] std::string decimal(const usdt::Int128& number);
/// A number of a row, exact; an average with one decimal where it is not whole. A percentile is at most 1/16 above the
/// duration that it is.
[[nodiscard]] std::string number_of(Shown shown, const ShownRow& row);
/// The same for people: durations with their unit.
[[nodiscard]] std::string shown_number(Shown shown, const View& view, const ShownRow& row);
/// A key for people; text as it is, for output to make safe.
[[nodiscard]] std::string key_text(const usdt::AttachPlan& plan, const usdt::TableColumn& column,
                                   const usdt::TableKey& key);
/// What rows are ordered by, which folded lines have at their end: their first number behind the count, else that.
[[nodiscard]] usdt::Int128 weight_of(const View& view, const ShownRow& row);
/// "[4K, 8K)", "(..., 0)", "(-16, -8]"
[[nodiscard]] std::string range_text(const View& view, const Range& range);
/// Whether the second begins where the first ends.
[[nodiscard]] bool are_neighbours(const ShownRow::Bar& a, const ShownRow::Bar& b);

}  // namespace usdt_trace
