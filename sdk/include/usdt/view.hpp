// SPDX-License-Identifier: BSD-2-Clause
// Ways to show hits in place of each event: rows of a table, histograms, percentiles, a heat map, the slowest.
// parse_view() makes a View of texts, and its TableQuestion is what a trace is asked (PlanOptions::table).
// arrange_rows() folds the rows that a tracer or a recording has into those that people read; HitRates tells how many
// hits a second each has, HeatSlicer what came in each stretch of time.
//
//     const auto view = usdt::parse_view({.by = "comm", .latency = true});
//     ...
//     for (const auto& row : usdt::arrange_rows(*view, table, rows)) print(row.percentile(990));
//
// All are plain values, each used by one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "usdt/expression.hpp"
#include "usdt/int128.hpp"
#include "usdt/result.hpp"
#include "usdt/table.hpp"

namespace usdt {
inline namespace v1 {

/// A number that each row has.
enum class RowNumber : std::uint8_t {
  count,
  sum,
  average,
  minimum,
  maximum,
  distinct,
  p50,
  p90,
  p99,
  p999,
  growth,  ///< of the sum, or without one of the count: View::grows()
  error,   ///< the standard error of the sum: View::variance
};
/// How the last key of a table is divided into buckets.
enum class Histogram : std::uint8_t { none, log2, linear };
/// Says which rows of a table come first.
enum class RowOrder : std::uint8_t {
  number,  ///< those with the largest number: weight_of()
  rate,    ///< those with most hits a second
  keys,    ///< those with the smallest keys
};

/// Buckets of View::latency are a sixteenth as wide as their power of 2, so that a percentile is at most 1/16 too
/// large.
inline constexpr unsigned kLatencySubBits = 4;

/// A question about all hits together.
struct View {
  std::shared_ptr<const TableQuestion> question;  ///< null: no table
  bool count_only = false;                        ///< only how many hits each probe had
  std::vector<RowNumber> shown;                   ///< in the order of columns
  Histogram histogram = Histogram::none;          ///< the last key is a bucket
  bool folded = false;                            ///< one line for each stack, for flame graphs
  bool latency = false;                           ///< percentiles of durations
  bool heat_map = false;                          ///< the histogram is cut by time (HeatSlicer)
  unsigned sub_bits = 0;                          ///< of log2 buckets
  std::int64_t from = 0, to = 0, step = 0;        ///< of linear buckets,
  unsigned digits = 0;                            ///< so many digits of which are behind the decimal point
  std::string value;                              ///< the expression, as it was written
  std::size_t top = SIZE_MAX;                     ///< at most so many rows are shown
  std::optional<double> interval;                 ///< seconds from one look at the table to the next
  bool rates = false;                             ///< rows have hits a second
  RowOrder order = RowOrder::number;              ///< of rows
  std::size_t slowest = 0;                        ///< so many events are shown; 0: a table, or all of them
  bool in_flight = false;  ///< these, or what the table is of, are calls and spans that have begun and not ended
  /// Whether the table is made of events as they come, which the kernel does not add up: by stacks of spans, or such
  /// as AskedStacks says, sums with their variance, and whatever asks for Operator::attribute.
  bool of_events = false;
  /// What each event adds to the variance of its row's sum, which is an estimate; null: the sum is exact.
  std::shared_ptr<const Expression> variance = {};
  bool user_stacks = false;    ///< a key is the stack of the process,
  bool kernel_stacks = false;  ///< a key is the stack of the kernel
  /// Whether no event is shown, but what they come to.
  [[nodiscard]] bool no_events() const noexcept { return count_only || question != nullptr; }
  /// Whether events are shown as they come.
  [[nodiscard]] bool each_event() const noexcept { return !no_events() && slowest == 0; }
  /// Whether rows are made here: of events as they come, or at each look again of what has not ended.
  [[nodiscard]] bool makes_rows() const noexcept { return (in_flight || of_events) && question != nullptr; }
  /// Returns what the kernel is asked to make a table of its hits by; null: no table.
  [[nodiscard]] std::shared_ptr<const TableQuestion> question_of_hits() const {
    return makes_rows() ? nullptr : question;
  }
  /// Whether rows tell how much they grew since the look before.
  [[nodiscard]] bool grows() const;
  /// Whether a key is a stack.
  [[nodiscard]] bool has_stacks() const noexcept { return user_stacks || kernel_stacks; }
  /// Whether the last key is a bucket.
  [[nodiscard]] bool has_buckets() const noexcept { return histogram != Histogram::none || latency; }
  /// Whether its numbers are nanoseconds: those of `latency`, and of the word "duration" itself.
  [[nodiscard]] bool is_about_durations() const;
  /// Whether the last key is not shown, because rows are counted by it (RowNumber::distinct) or it is a bucket.
  [[nodiscard]] bool folds_last_key() const noexcept {
    return has_buckets() || (!shown.empty() && shown.back() == RowNumber::distinct);
  }
  /// How many keys of `table` are shown. The table of a recording without a site, where no key has a type, has none.
  [[nodiscard]] std::size_t shown_keys(const PlannedTable& table) const noexcept {
    return table.keys.size() - (folds_last_key() && !table.keys.empty() ? 1 : 0);
  }
};

/// A view as text: the values of the options of usdt-trace that have these names. Empty: not asked for.
struct ViewText {
  bool count = false;  ///< without a table: only how many hits each probe had
  std::string by = {}, sum = {}, average = {}, minimum = {}, maximum = {}, distinct = {};
  std::string variance = {};
  std::string log2 = {}, linear = {}, heat_map = {};  ///< "hist", "lhist" ("EXPR:FROM:TO:STEP"), "heatmap"
  unsigned sub_bits = 0;                              ///< "hist-detail"
  bool latency = false;
  bool folded = false;
  bool rate = false;
  std::uint32_t max_rows = 4096;
  std::optional<std::uint64_t> top = {};
  std::size_t slowest = 0;
  std::size_t in_flight = 0;
  bool growth = false;
  std::optional<double> interval = {};                     ///< seconds
  std::uint32_t key_bytes = TableQuestion::kMostKeyBytes;  ///< "key-size"
};

/// Makes a view of texts. Messages put `prefix` before the names of options: "--" on a command line. Errors: syntax,
/// invalid_argument (parts that do not go together).
[[nodiscard]] Result<View> parse_view(const ViewText& text, std::string_view prefix = {});

/// The numbers that one bar of a histogram counts.
using BucketRange = std::variant<Bucket, RealBucket>;
/// Returns the range of the bucket with this key and of those behind it up to `last`. `reals`: TableColumn::ranges_of.
[[nodiscard]] BucketRange range_of(const View& view, const std::optional<ExpressionType>& reals, std::int64_t key,
                                   std::int64_t last);

/// A row whose last key is folded, where its view folds it: rows that differ in that key alone have become one.
struct ArrangedRow : TableRow {
  /// One bucket that has hits.
  struct Bar {
    std::int64_t key;
    BucketRange range;
    std::uint64_t count = 0;
  };
  std::uint64_t distinct = 0;               ///< how many values the folded key had
  bool distinct_at_least = false;           ///< there may be more: of some values only the beginning was compared
  std::vector<Bar> bars = {};               ///< in the order of numbers, without empty ones
  std::optional<ExpressionType> type = {};  ///< of the value, of which the extremes are; nothing: there is none
  std::optional<double> per_second = {};    ///< hits a second; nothing: not known
  double growth = 0;                        ///< RowNumber::growth

  /// The number where it is a real; nothing: it is an integer.
  [[nodiscard]] std::optional<double> real(RowNumber number) const;
  /// The number where it is an integer. An average is rounded toward 0, a percentile is at most 1/16 too large.
  [[nodiscard]] Int128 integer(RowNumber number) const;
  /// The duration that `permille` of 1000 hits do not exceed, ns, at most 1/16 too large.
  [[nodiscard]] Int128 percentile(unsigned permille) const;
};

/// Returns the digits of a number.
[[nodiscard]] std::string decimal_text(const Int128& number);
/// Returns a number of a row in digits, exact but for percentiles; an average that is not whole with one decimal.
[[nodiscard]] std::string decimal_text(const ArrangedRow& row, RowNumber number);
/// Returns the number that rows are ordered by: their first one behind the count, else the count.
[[nodiscard]] Int128 weight_of(const View& view, const ArrangedRow& row);
/// Whether bar `b` begins where bar `a` ends.
[[nodiscard]] bool are_neighbours(const ArrangedRow::Bar& a, const ArrangedRow::Bar& b);

/// Counts how many hits a second the rows of a table had, from one look at it to the next.
class HitRates {
 public:
  /// The clock that looks are timed by.
  using Clock = std::chrono::steady_clock;

  /// Begins a trace: no row has hits.
  void begin(Clock::time_point now) { began_ = looked_ = now; }
  /// Takes the rows as they are. `whole`: rates are those since the beginning, else since the look before.
  void look(const View& view, const std::vector<TableRow>& rows, Clock::time_point now, bool whole);
  /// Returns the hits a second of the row with these keys, those that are shown.
  [[nodiscard]] double of(const std::vector<TableKey>& keys) const;

 private:
  using Counts = std::map<std::vector<TableKey>, std::uint64_t>;

  Clock::time_point began_, looked_;
  Counts before_, now_;
  double seconds_ = 0;  ///< between them
};

/// Tells how much rows grew from one look at a table to the next.
class RowGrowth {
 public:
  /// Returns by how much the sum of a row, or without one its count, differs from what it was.
  [[nodiscard]] double of(const ArrangedRow& row) const;
  /// Keeps the rows as they are, for the next look.
  void keep(const std::vector<ArrangedRow>& rows);
  /// Makes growth count from the first look on, if there was one.
  void begin_at_first() { before_ = first_.value_or(Numbers()); }

 private:
  using Numbers = std::map<std::vector<TableKey>, double>;

  std::optional<Numbers> first_ = {};
  Numbers before_ = {};
};

/// Folds rows as `view` asks and puts them in View::order. `rates` null: rates are not known, and the largest numbers
/// come first in place of them. `growth` null: rows have grown from nothing.
[[nodiscard]] std::vector<ArrangedRow> arrange_rows(const View& view, const PlannedTable& table,
                                                    const std::vector<TableRow>& rows, const HitRates* rates = nullptr,
                                                    const RowGrowth* growth = nullptr);

/// Hits of one stretch of time, by bucket.
struct HeatSlice {
  std::int64_t from = 0, to = 0;                 ///< time of day, ns
  std::map<std::int64_t, std::uint64_t> counts;  ///< by the key of log2_buckets(); none is 0
  std::optional<ExpressionType> reals = {};      ///< TableColumn::ranges_of
};

/// Cuts what a table counts, which only grows, into stretches of time.
class HeatSlicer {
 public:
  /// The first stretch begins at `from`, time of day, ns.
  explicit HeatSlicer(std::int64_t from) : from_(from) {}
  /// Returns what came since the last cut. `rows`: those of `table` by now.
  [[nodiscard]] HeatSlice cut(const PlannedTable& table, const std::vector<TableRow>& rows, std::int64_t to);
  /// The next stretch begins at `from`, since nothing came before it.
  void begin(std::int64_t from) { from_ = from; }

 private:
  std::int64_t from_;
  std::map<std::int64_t, std::uint64_t> before_;
};

/// The slices of a trace so far. Neighbours become one where there are more than anybody can look at.
class HeatMap {
 public:
  /// Adds the latest one.
  void add(HeatSlice slice);
  /// From old to new.
  [[nodiscard]] const std::vector<HeatSlice>& slices() const noexcept { return slices_; }

 private:
  std::vector<HeatSlice> slices_;
};

}  // namespace v1
}  // namespace usdt
