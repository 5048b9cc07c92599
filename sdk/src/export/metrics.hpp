// SPDX-License-Identifier: BSD-2-Clause
// The answers to a question as metrics: counters, gauges and histograms with labels, for monitoring systems whatever
// their formats. Label sets are bounded: who is traced says how many keys there are, and a monitoring system keeps
// each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "usdt/account.hpp"
#include "usdt/answers.hpp"
#include "usdt/int128.hpp"
#include "usdt/question.hpp"

namespace usdt::exports::metrics {

/// Names, which are [a-zA-Z_][a-zA-Z0-9_]*, and values, which are any text.
using Labels = std::vector<std::pair<std::string, std::string>>;

/// Values of hits, counted in ranges.
struct Histogram {
  /// Values from `low` to `high`, both included, in the unit of the program traced.
  struct Bucket {
    double low, high;
    std::uint64_t count;
  };
  std::vector<Bucket> buckets = {};  ///< in the order of values, without empty ones
  double per_unit = 1;               ///< how many of that unit are one of the family's
  bool whole = true;                 ///< values are integers there
  std::uint64_t count = 0;
  std::optional<double> sum = {};  ///< nothing: it is not known
  /// How fine buckets of equal ratio may be that these are put in (put_in_equal_ratios()); nothing: they are of equal
  /// width, and stay what they are.
  std::optional<unsigned> scale = {};
};

/// One number, or a histogram, and what it is of.
struct Sample {
  Labels labels;
  std::variant<Int128, double, Histogram> value;
};

/// How a metric behaves.
enum class Kind : std::uint8_t {
  counter,  ///< from 0 at the beginning of the trace, it only grows
  gauge,
  histogram,
};

/// A metric with its samples, each of which has other labels.
struct Family {
  std::string name;  ///< "usdt_hits": without the suffixes of formats, with that of the unit
  Kind kind;
  std::string_view unit;  ///< "seconds", or empty
  std::string help;
  std::vector<Sample> samples;
};

/// Lets so many label sets have a sample of their own, those that come first, for ever; all further ones are counted
/// together, as "other".
class LabelSets {
 public:
  explicit LabelSets(std::size_t most) : most_(most) {}
  /// Returns `values`, or "other" in the place of each.
  [[nodiscard]] std::vector<std::string> admit(std::vector<std::string> values);
  /// How many have had no sample of their own.
  [[nodiscard]] std::size_t refused() const noexcept { return refused_.size() + uncounted_; }

 private:
  std::size_t most_;
  std::set<std::vector<std::string>> admitted_;
  std::set<std::size_t> refused_;  ///< hashes of them, as many as may be remembered
  std::size_t uncounted_ = 0;
};

/// The metrics of one question, as of the last look.
class QuestionMetrics {
 public:
  /// A monitoring system is usually asked to keep no more series of one metric than this.
  static constexpr std::size_t kMostLabelSets = 2000;

  /// `question` lives as long.
  explicit QuestionMetrics(const Question& question);
  /// Takes the rows of a table as they are.
  void take(const AttachPlan& plan, const ArrangedTable& look);
  /// Takes the account of all hits as it is.
  void take(const AttachPlan& plan, const SessionSummary& summary);
  /// Returns all metrics.
  [[nodiscard]] std::vector<Family> families() const;

 private:
  [[nodiscard]] std::string name(std::string_view what, std::string_view unit = {}) const;
  /// Rows with equal labels, added up.
  struct Row {
    ArrangedRow sum;
    std::size_t rows = 0;
  };
  void add_rows(const PlannedTable& table, const std::vector<std::string>& labels,
                const std::map<std::vector<std::string>, Row>& rows);
  void add_distinct(const std::vector<std::string>& labels, const std::map<std::vector<std::string>, Row>& rows,
                    const std::string& value);
  void take_probes(const AttachPlan& plan, const SessionSummary& summary);
  void add_pairing(const CountInfo& count, const std::map<std::vector<std::string>, Account>& by_name);

  const Question& question_;
  const View& view_ = question_.view;
  LabelSets rows_, probes_;
  std::vector<Family> of_rows_, of_account_;
};

/// The histogram of a row of a view that has buckets (View::has_buckets()); durations in seconds.
[[nodiscard]] Histogram histogram_of(const View& view, const PlannedTable& table, const ArrangedRow& row);

/// A histogram in buckets of equal ratio, as OpenTelemetry and Prometheus (there "native" ones) have them: that with
/// index i has what is above 2^(i / 2^scale) and up to 2^((i + 1) / 2^scale), by magnitude.
struct EqualRatios {
  unsigned scale = 0;
  std::uint64_t zeros = 0;
  std::map<std::int32_t, std::uint64_t> positive = {}, negative = {};  ///< counts by index
};
/// Puts each bucket where its largest magnitude belongs: no value is above the range where it is counted, and those at
/// the lower edge of a bucket may be below that by the width of the bucket.
[[nodiscard]] EqualRatios put_in_equal_ratios(const Histogram& histogram);

/// Returns the upper bounds of buckets that are few enough to be series of their own, for all samples of a family: of
/// buckets of equal ratio powers of 2, without a gap; else all that any sample has.
[[nodiscard]] std::vector<double> bounds_of(const Family& family);
/// Returns how many values are up to each of `bounds`, which bounds_of() returned.
[[nodiscard]] std::vector<std::uint64_t> count_up_to(const std::vector<double>& bounds, const Histogram& histogram);

/// Makes a name of any text: "str(arg0)" becomes "str_arg0".
[[nodiscard]] std::string name_of(std::string_view text);

}  // namespace usdt::exports::metrics
