// SPDX-License-Identifier: BSD-2-Clause
// Tables that the kernel fills in place of events: hits whose keys are equal are added up in one row. TableQuestion
// says what the keys and the value are (log2_buckets() makes a histogram's key), PlanOptions::table asks it,
// Tracer::table() returns TableRows. TableBuilder makes such rows of hits outside of the kernel.
//     auto keys = usdt::parse_expressions("comm, retval");
//     usdt::PlanOptions options{.table = std::make_shared<const usdt::TableQuestion>(usdt::TableQuestion{.keys =
//     *keys})};
// Threads: plain values and pure functions; a TableBuilder is for one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "usdt/arg.hpp"
#include "usdt/expression.hpp"
#include "usdt/int128.hpp"
#include "usdt/result.hpp"
#include "usdt/stack.hpp"

namespace usdt {
inline namespace v1 {

/// Holds a question that is answered by a table, which the kernel fills: hits whose keys are equal are in one row. A
/// plain value.
struct TableQuestion {
  /// The most bytes that the keys of a row of the kernel have together: 8 for a number, 16 for comm and for a stack;
  /// texts share the rest.
  static constexpr std::size_t kMostKeyBytes = 64;
  /// The most of a row that is made of events.
  static constexpr std::size_t kMostEventKeyBytes = 4096;

  std::vector<Expression> keys = {};     ///< integers, texts and stacks; none: one row
  std::optional<Expression> value = {};  ///< an integer, of which TableRow has the sum
  bool extremes = false;                 ///< rows also have the smallest and the largest: Linux 5.12, arm64 5.18
  /// Whether keys, numbers in buckets and the value may be floats and doubles, too. A key has all NaNs in one row and 0
  /// of both signs in one (TableReal), buckets are RealBucket, and a value has its extremes (real_of_extreme()). NaN is
  /// in no bucket and no value, and such a hit is in no row.
  bool reals = false;
  /// Whether rows also have the sum of a value that is real (TableRow::real_sum), exact for 2^37 hits of a row; takes
  /// effect together with `reals`. It takes some 700 bytes a row, four times over.
  bool real_sums = false;
  std::uint32_t max_rows = 4096;  ///< hits that find no room for another row are counted: ProbeCounts::table_full
  std::uint32_t key_bytes = kMostKeyBytes;  ///< above that EventTable makes the rows, and no kernel
};

/// Makes a key that says in which bucket `value` is: the key of a histogram. From each power of 2 to the next one there
/// are 2^`sub_bits` buckets of equal width (at most 2^4); each number below 2^`sub_bits` has a bucket of its own. The
/// buckets of negative numbers are the mirror image. Bucket::log2() returns the numbers that a key stands for.
///     auto duration = usdt::parse_expression("duration");
///     question.keys.push_back(usdt::log2_buckets(*duration, 2));
[[nodiscard]] Expression log2_buckets(Expression value, unsigned sub_bits);
/// Makes a key with buckets of the width `step` from `min` up to `max`, one for all numbers below and one for all
/// above. If `digits` is above 0, that many decimal digits of the three are behind the point (5, 20, 5 and 1: from 0.5
/// to 2 by 0.5). Such buckets are for reals alone; each bound is the real nearest to the decimal number. Errors:
/// invalid_argument (no such buckets).
[[nodiscard]] Result<Expression> linear_buckets(Expression value, std::int64_t min, std::int64_t max, std::int64_t step,
                                                unsigned digits = 0);
/// The most buckets between `min` and `max` that linear_buckets() of a real can have.
inline constexpr std::size_t kMostRealBuckets = 1024;

/// Makes a key that tells the values of `value` apart, also texts that begin alike for longer than a key has room. It
/// is for counting values, not for showing them (KeyForm::fingerprint).
[[nodiscard]] Expression fingerprint(Expression value);

/// Holds the integers from `first` to `last`, both included. The outermost linear buckets go on to INT64_MIN and
/// UINT64_MAX.
struct Bucket {
  Int128 first = 0;
  Int128 last = 0;

  /// Returns the bucket of log2_buckets() whose key is `key`.
  [[nodiscard]] static Bucket log2(std::int64_t key, unsigned sub_bits);
  /// Returns the bucket of linear_buckets() whose key is `key`.
  [[nodiscard]] static Bucket linear(std::int64_t key, std::int64_t min, std::int64_t max, std::int64_t step);
};

/// Holds the reals from `first` on and below `end`; in buckets of log2_buckets() below 0, the reals above `first` and
/// up to `end`. If `first` equals `end`, it holds that number alone: 0, or an infinity.
struct RealBucket {
  double first = 0;
  double end = 0;

  /// Returns the bucket of log2_buckets() over a real of that type whose key is `key`. Between 0 and the smallest
  /// normal number there are 2^`sub_bits` of equal width.
  [[nodiscard]] static RealBucket log2(ExpressionType type, std::int64_t key, unsigned sub_bits);
  /// Returns the bucket of linear_buckets() whose key is `key`; the outermost ones go to the infinities.
  [[nodiscard]] static RealBucket linear(std::int64_t key, std::int64_t min, std::int64_t max, std::int64_t step,
                                         unsigned digits);
};

/// Tells how a key is shown.
enum class KeyForm : std::uint8_t {
  decimal,
  hex,  ///< "hex(x)"
  /// fingerprint() of a text: a TableText of 16 bytes that stand for it. The fingerprint of a text beyond 511 bytes is
  /// that of its first 511 bytes, and is `truncated`.
  fingerprint,
  ipv4,  ///< "ntop(x)": the bytes of the number as they are in memory
};

/// Describes one key of a table.
struct TableColumn {
  std::string label;  ///< as it was written
  ExpressionType type = ExpressionType::signed_integer;
  std::uint32_t offset = 0;            ///< of its bytes behind the first key's
  std::uint32_t size = 8;              ///< bytes
  std::optional<HitField> field = {};  ///< it is one of these
  std::optional<Arg> arg = {};         ///< it is an argument, of the first site's type
  KeyForm form = KeyForm::decimal;
  std::optional<ExpressionType> ranges_of = {};  ///< it is a bucket of reals of this type
};

/// Describes the table of a plan: TableQuestion with the types that keys and value have at the sites.
struct PlannedTable {
  std::vector<TableColumn> keys;
  std::optional<ExpressionType> value = {};  ///< an integer; TableQuestion::reals
  bool extremes = false;
  bool real_sums = false;  ///< TableQuestion::real_sums, of a real
  std::uint32_t max_rows = 0;
  std::uint32_t key_bytes = TableQuestion::kMostKeyBytes;  ///< TableQuestion::key_bytes
};

/// Holds a key that is a text. `truncated`: the text is longer than `bytes`, and texts that begin alike share the row.
struct TableText {
  std::string bytes;
  bool truncated = false;
  friend bool operator==(const TableText&, const TableText&) = default;
  /// Orders texts by their bytes.
  friend bool operator<(const TableText& a, const TableText& b) {
    const int order = a.bytes.compare(b.bytes);
    return order < 0 || (order == 0 && !a.truncated && b.truncated);
  }
};
/// Holds a key that is a stack, of HitField::ustack or kstack: addresses as the kernel found them by frame pointers,
/// and once Symbolizer::name() was given the row, frames with names. Rows of recordings have the names alone.
struct TableStack {
  bool kernel = false;
  std::uint32_t pid = 0;                      ///< of the process, in the tracer's pid namespace; 0: the kernel's
  std::vector<std::uint64_t> addresses = {};  ///< innermost first
  std::uint64_t caller = 0;                   ///< the return address, at a function's first instruction; 0: not known
  bool cut = false;                           ///< the kernel had room for no more addresses
  std::string why_none = {};                  ///< there are no addresses: why
  std::shared_ptr<const Stack> names = {};    ///< null: it was not named yet

  /// Orders stacks: named ones by their names, in whatever process they are; others by their addresses.
  [[nodiscard]] bool is_before(const TableStack& other) const;
  friend bool operator==(const TableStack& a, const TableStack& b) { return !a.is_before(b) && !b.is_before(a); }
  /// Returns is_before().
  friend bool operator<(const TableStack& a, const TableStack& b) { return a.is_before(b); }
};
/// Holds a key that is a real. 0 has no sign, and NaN is behind all numbers.
struct TableReal {
  double value = 0;
  /// Orders reals by their value, NaN last.
  friend bool operator<(const TableReal& a, const TableReal& b) {
    return a.value < b.value || (b.value != b.value && a.value == a.value);
  }
  friend bool operator==(const TableReal& a, const TableReal& b) { return !(a < b) && !(b < a); }
};
/// Holds a key: a number, by its column's type, a text, a stack or a real. The key of HitField::probe is the number of
/// the probe in the plan.
using TableKey = std::variant<std::int64_t, std::uint64_t, TableText, TableStack, TableReal>;
/// Returns the 64 bits of a key that is an integer, of others 0.
[[nodiscard]] inline std::int64_t integer_of(const TableKey& key) noexcept {
  if (const auto* number = std::get_if<std::uint64_t>(&key)) return static_cast<std::int64_t>(*number);
  const auto* number = std::get_if<std::int64_t>(&key);
  return number != nullptr ? *number : 0;
}

/// Adds up doubles, of whatever sizes and in whatever order: the sum is exact, and value() alone rounds it.
class RealSum {
 public:
  /// Adds a number, which is not NaN.
  void add(double value);
  /// Adds `number` times 2^`exponent`, which is at least -1074.
  void add(std::int64_t number, int exponent);
  /// Adds an infinity.
  void add_infinity(bool negative) noexcept { (negative ? negative_infinity_ : positive_infinity_) = true; }
  /// Adds all numbers of another sum.
  void add(const RealSum& other);
  /// Takes away the numbers of another sum, which are among its own; infinities stay.
  void subtract(const RealSum& other);
  /// Multiplies the sum by `by`, rounded: the sum of so many times as many numbers.
  void scale(double by);
  /// Returns the double nearest to the sum; of two that are equally near, the even one; an infinity beyond the largest
  /// double. NaN: infinities of both signs were added.
  [[nodiscard]] double value() const;

 private:
  std::vector<std::int64_t> limbs_;  ///< of 32 bits, in units of 2^-1074, the last one with its sign; empty: 0
  bool positive_infinity_ = false, negative_infinity_ = false;
};

/// Holds what hits with equal keys add up to.
struct TableRow {
  std::vector<TableKey> keys = {};
  std::uint64_t count = 0;
  Int128 sum = 0;      ///< of the values, exact; 0 if they are reals
  Int128 minimum = 0;  ///< TableQuestion::extremes; if the values are reals, what real_of_extreme() takes
  Int128 maximum = 0;
  RealSum real_sum = {};  ///< TableQuestion::real_sums
  double variance = 0;    ///< of the sum, where that is an estimate of others (View::variance)

  /// Adds the count, sums and extremes of other hits with these keys.
  void add(const TableRow& other);
  /// Takes away the count and sums of some of its hits; the extremes stay those of all.
  void subtract(const TableRow& some);
  /// Multiplies count and sums by `weight`, and rounds them: the row of so many times as many hits.
  void scale(double weight);
};

/// Returns the real that TableRow::minimum or maximum stands for in a table whose value is a real of that type. 0 has a
/// plus.
[[nodiscard]] double real_of_extreme(ExpressionType type, const Int128& extreme) noexcept;

/// Puts recorded hits into rows, as programs in the kernel do. Threads: one at a time.
class TableBuilder {
 public:
  /// Tells what became of a hit.
  enum class Added : std::uint8_t {
    row,         ///< it is in its row
    rejected,    ///< PlanOptions::where says no
    undecided,   ///< something that is asked for was not read, or is divided by 0
    table_full,  ///< there is no row for it, and PlannedTable::max_rows others
  };

  /// Makes an empty table of rows as `table` describes them.
  explicit TableBuilder(PlannedTable table);
  ~TableBuilder();
  TableBuilder(TableBuilder&&) noexcept;
  TableBuilder& operator=(TableBuilder&&) noexcept;

  /// Adds a hit by the question of its site, one of AttachPlan::filters, and returns what became of it.
  /// HitFacts::field() has the number of its probe. The hit stands for `weight` hits (Event::weight()); rows() then has
  /// estimates, rounded.
  Added add(const TypedExpression& question, const HitFacts& facts, double weight = 1);
  /// Returns the rows by now, in the order of their keys, as Tracer::table() does.
  [[nodiscard]] std::vector<TableRow> rows() const;

 private:
  PlannedTable table_;
  struct Rows;
  std::unique_ptr<Rows> rows_;
};

}  // namespace v1
}  // namespace usdt
