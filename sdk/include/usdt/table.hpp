// SPDX-License-Identifier: BSD-2-Clause
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

/// A question that is answered by a table, which the kernel fills: hits whose keys are equal are in one row. A plain
/// value.
struct TableQuestion {
  /// The keys of a row have at most so many bytes together: 8 for a number, 16 for comm and for a stack, and the texts
  /// share what is left.
  static constexpr std::size_t kMostKeyBytes = 64;

  std::vector<Expression> keys = {};     ///< integers, texts and stacks; none: one row
  std::optional<Expression> value = {};  ///< an integer, of which TableRow has the sum
  bool extremes = false;                 ///< and the smallest and largest: Linux 5.12, arm64 5.18
  /// Keys, what buckets are of and the value may be floats and doubles, too. A key has all NaNs in one row and 0 of
  /// both signs in one (TableReal), buckets are RealBucket, and of a value there are the extremes
  /// (real_of_extreme()); NaN is in no bucket and no value, and such a hit in no row.
  bool reals = false;
  /// With `reals`: of a value that is one the sum, too (TableRow::real_sum), exact for 2^37 hits of a row. It takes
  /// some 700 bytes a row, four times over.
  bool real_sums = false;
  std::uint32_t max_rows = 4096;  ///< hits that find no room for another row are counted: ProbeCounts::table_full
};

/// A key that says in which bucket `value` is. From each power of 2 to the next one there are 2^`sub_bits` buckets of
/// equal width (at most 2^4); each number below 2^`sub_bits` has a bucket of its own. The buckets of negative numbers
/// are the mirror image. Bucket::log2() makes of the key which numbers it stands for.
[[nodiscard]] Expression log2_buckets(Expression value, unsigned sub_bits);
/// The same with buckets of the width `step` from `min` up to `max`, and one for all below and one for all above. With
/// `digits` of these behind the decimal point (5, 20, 5 and 1: from 0.5 to 2 by 0.5), and for reals alone, as are
/// bounds: the real nearest to the decimal number. Errors: invalid_argument (no such buckets).
[[nodiscard]] Result<Expression> linear_buckets(Expression value, std::int64_t min, std::int64_t max, std::int64_t step,
                                                unsigned digits = 0);
/// linear_buckets() of a real: at most so many between `min` and `max`.
inline constexpr std::size_t kMostRealBuckets = 1024;

/// A key that tells the values of `value` apart, of texts too that begin alike for longer than a key has room: for who
/// counts values and does not show them (KeyForm::fingerprint).
[[nodiscard]] Expression fingerprint(Expression value);

/// Numbers from `first` to `last`, both of them. Those of the ends of linear buckets are INT64_MIN and UINT64_MAX.
struct Bucket {
  Int128 first = 0;
  Int128 last = 0;

  /// The bucket of log2_buckets() that has `key` for a key.
  [[nodiscard]] static Bucket log2(std::int64_t key, unsigned sub_bits);
  /// The bucket of linear_buckets() that has `key` for a key.
  [[nodiscard]] static Bucket linear(std::int64_t key, std::int64_t min, std::int64_t max, std::int64_t step);
};

/// Reals from `first` on and below `end`; of buckets of log2_buckets() below 0 those above `first` up to `end`; where
/// both are the same that alone: 0, or an infinity.
struct RealBucket {
  double first = 0;
  double end = 0;

  /// The bucket of log2_buckets() over a real of that type that has `key` for a key. Between 0 and the smallest number
  /// that has all its bits there are 2^`sub_bits` of equal width.
  [[nodiscard]] static RealBucket log2(ExpressionType type, std::int64_t key, unsigned sub_bits);
  /// The bucket of linear_buckets() that has `key` for a key; those at the ends go to the infinities.
  [[nodiscard]] static RealBucket linear(std::int64_t key, std::int64_t min, std::int64_t max, std::int64_t step,
                                         unsigned digits);
};

/// How a number that is a key is shown.
enum class KeyForm : std::uint8_t {
  decimal,
  hex,  ///< "hex(x)"
  /// fingerprint() of a text, a TableText: 16 bytes in its place. Of a text beyond 511 bytes they are of the first 511,
  /// and it is `truncated`.
  fingerprint,
  ipv4,  ///< "ntop(x)": the bytes of the number as they are in memory
};

/// What is known of one key of a table.
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

/// What PlanOptions::table comes to with the types of what is traced.
struct PlannedTable {
  std::vector<TableColumn> keys;
  std::optional<ExpressionType> value = {};  ///< an integer; TableQuestion::reals
  bool extremes = false;
  bool real_sums = false;  ///< TableQuestion::real_sums, of a real
  std::uint32_t max_rows = 0;
};

/// A key that is a text; `truncated`: it is longer than its bytes, and texts that begin alike share the row.
struct TableText {
  std::string bytes;
  bool truncated = false;
  friend bool operator==(const TableText&, const TableText&) = default;
  /// In the order of their bytes.
  friend bool operator<(const TableText& a, const TableText& b) {
    const int order = a.bytes.compare(b.bytes);
    return order < 0 || (order == 0 && !a.truncated && b.truncated);
  }
};
/// A key that is a stack, of HitField::ustack or kstack: addresses as the kernel found them by frame pointers, and once
/// Symbolizer::name() was given the row, frames with names. Of recordings it has only these.
struct TableStack {
  bool kernel = false;
  std::uint32_t pid = 0;                      ///< of the process, in the tracer's pid namespace; 0: the kernel's
  std::vector<std::uint64_t> addresses = {};  ///< innermost first
  std::uint64_t caller = 0;                 ///< at the first instruction of a function whom it returns to; 0: not known
  bool cut = false;                         ///< the kernel had room for no more addresses
  std::string why_none = {};                ///< there are no addresses: why
  std::shared_ptr<const Stack> names = {};  ///< null: it was not named yet

  /// An order of stacks: of those with names by these, in whatever process they are; of others by the addresses.
  [[nodiscard]] bool is_before(const TableStack& other) const;
  friend bool operator==(const TableStack& a, const TableStack& b) { return !a.is_before(b) && !b.is_before(a); }
  /// is_before()
  friend bool operator<(const TableStack& a, const TableStack& b) { return a.is_before(b); }
};
/// A key that is a real. 0 has no sign, and NaN is behind all numbers.
struct TableReal {
  double value = 0;
  /// In the order of the numbers.
  friend bool operator<(const TableReal& a, const TableReal& b) {
    return a.value < b.value || (b.value != b.value && a.value == a.value);
  }
  friend bool operator==(const TableReal& a, const TableReal& b) { return !(a < b) && !(b < a); }
};
/// A number, by its column's type, a text, a stack or a real. Of HitField::probe the number of the probe in the plan.
using TableKey = std::variant<std::int64_t, std::uint64_t, TableText, TableStack, TableReal>;

/// The sum of doubles, of whatever sizes and in whatever order: exact, and rounded only where it is told.
class RealSum {
 public:
  /// Adds a number, which is not NaN.
  void add(double value);
  /// Adds `number` times 2^`exponent`, which is at least -1074.
  void add(std::int64_t number, int exponent);
  /// Adds an infinity.
  void add_infinity(bool negative) noexcept { (negative ? negative_infinity_ : positive_infinity_) = true; }
  /// Adds all that another one is of.
  void add(const RealSum& other);
  /// Takes away the numbers of another one, which are among its own; infinities stay.
  void subtract(const RealSum& other);
  /// Makes it that of so many times as many numbers, rounded.
  void scale(double by);
  /// The double nearest to the sum, of two that are the even one; an infinity beyond the largest. NaN: infinities of
  /// both signs were added.
  [[nodiscard]] double value() const;

 private:
  std::vector<std::int64_t> limbs_;  ///< of 32 bits, in units of 2^-1074, the last one with its sign; empty: 0
  bool positive_infinity_ = false, negative_infinity_ = false;
};

/// Hits with the same keys.
struct TableRow {
  std::vector<TableKey> keys = {};
  std::uint64_t count = 0;
  Int128 sum = 0;      ///< of the values, exact; of reals 0
  Int128 minimum = 0;  ///< TableQuestion::extremes; of reals what real_of_extreme() takes
  Int128 maximum = 0;
  RealSum real_sum = {};  ///< TableQuestion::real_sums

  /// Adds what is told of other hits with these keys.
  void add(const TableRow& other);
  /// Takes away what is told of some of its hits; the extremes stay those of all.
  void subtract(const TableRow& some);
  /// Makes it tell of so many times as many hits: count and sum are multiplied, and rounded.
  void scale(double weight);
};

/// TableRow::minimum and maximum of a table whose value is a real of that type: the real itself. 0 has a plus.
[[nodiscard]] double real_of_extreme(ExpressionType type, const Int128& extreme) noexcept;

/// Puts recorded hits into rows, as programs in the kernel do. One thread at a time.
class TableBuilder {
 public:
  /// What became of a hit.
  enum class Added : std::uint8_t {
    row,
    rejected,    ///< PlanOptions::where says no
    undecided,   ///< something that is asked for was not read, or is divided by 0
    table_full,  ///< there is no row for it, and PlannedTable::max_rows others
  };

  /// For rows of that kind.
  explicit TableBuilder(PlannedTable table);
  ~TableBuilder();
  TableBuilder(TableBuilder&&) noexcept;
  TableBuilder& operator=(TableBuilder&&) noexcept;

  /// Adds a hit by the question of its site, one of AttachPlan::filters. HitFacts::field() has the number of its probe.
  /// It stands for `weight` of them (Event::weight()); rows() then has estimates, rounded.
  Added add(const TypedExpression& question, const HitFacts& facts, double weight = 1);
  /// As Tracer::table().
  [[nodiscard]] std::vector<TableRow> rows() const;

 private:
  PlannedTable table_;
  struct Rows;
  std::unique_ptr<Rows> rows_;
};

}  // namespace v1
}  // namespace usdt
