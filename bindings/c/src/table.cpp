// SPDX-License-Identifier: BSD-2-Clause
// Tables: what is asked for, and its rows.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "handles.hpp"

namespace usdtc {
namespace {

using Histogram = AskedTable::Histogram;

bool is_stack(const usdt::Expression& key) {
  return key.root.op == usdt::Operator::field &&
         usdt::info_of(static_cast<usdt::HitField>(key.root.bits)).type == usdt::ExpressionType::stack;
}

usdt::Result<usdt::Expression> parsed(const char* text, std::string_view what) {
  auto expression = usdt::parse_expression(text);
  if (!expression) return usdt::fail(expression.error().within(std::string(what)));
  return expression;
}

usdt::Result<void> add_histogram(const usdtc_table& given, AskedTable& asked, usdt::TableQuestion& question) {
  auto value = parsed(given.histogram, "histogram");
  if (!value) return usdt::fail(std::move(value.error()));
  if (given.step == 0) {
    if (given.histogram_detail > 4)
      return invalid(fmt::format("a histogram_detail of {} is more than 4", given.histogram_detail));
    asked.histogram = Histogram::log2;
    asked.detail = given.histogram_detail;
    question.keys.push_back(usdt::log2_buckets(std::move(*value), asked.detail));
    return {};
  }
  auto buckets = usdt::linear_buckets(std::move(*value), given.from, given.to, given.step, given.digits);
  if (!buckets) return usdt::fail(buckets.error().within("histogram"));
  asked.histogram = Histogram::linear;
  asked.from = given.from;
  asked.to = given.to;
  asked.step = given.step;
  asked.digits = given.digits;
  question.keys.push_back(std::move(*buckets));
  return {};
}

usdt::Result<void> check(const usdtc_table& given) {
  constexpr std::uint32_t flags = USDTC_TABLE_EXTREMES | USDTC_TABLE_REALS;
  if ((given.flags & ~flags) != 0)
    return invalid(fmt::format("flags {:#x} of a table have bits that mean nothing", given.flags));
  if ((given.flags & USDTC_TABLE_EXTREMES) != 0 && !given.value)
    return invalid("extremes of no value: set usdtc_table.value");
  if (!given.by && !given.value && !given.histogram)
    return invalid("a table of nothing: set usdtc_table.by, value or histogram");
  if (given.digits != 0 && (given.step == 0 || (given.flags & USDTC_TABLE_REALS) == 0))
    return invalid("digits of ranges that are not of reals: set usdtc_table.step and USDTC_TABLE_REALS");
  return {};
}

/// In two's complement, which the numbers of 32-bit machines are not kept in.
usdtc_wide wide_of(usdt::Int128 number) {
  const bool negative = number < 0;
  const usdt::Int128 bits = negative ? -(number + 1) : number;
  const auto low = static_cast<std::uint64_t>(bits % (usdt::Int128{1} << 64));
  const auto high = static_cast<std::uint64_t>(bits / (usdt::Int128{1} << 64));
  return {negative ? ~low : low, static_cast<std::int64_t>(negative ? ~high : high)};
}

}  // namespace

usdt::Bucket AskedTable::bucket(const usdt::TableKey& key) const {
  return histogram == Histogram::log2 ? usdt::Bucket::log2(usdt::integer_of(key), detail)
                                      : usdt::Bucket::linear(usdt::integer_of(key), from, to, step);
}

usdt::RealBucket AskedTable::real_bucket(usdt::ExpressionType type, const usdt::TableKey& key) const {
  return histogram == Histogram::log2 ? usdt::RealBucket::log2(type, usdt::integer_of(key), detail)
                                      : usdt::RealBucket::linear(usdt::integer_of(key), from, to, step, digits);
}

usdt::Result<AskedTable> read_table(const usdtc_table* pointer) {
  AskedTable asked;
  if (!pointer) return asked;
  auto given = read_struct(pointer, kTable, "usdtc_table");
  if (!given) return usdt::fail(std::move(given.error()));
  if (auto sense = check(*given); !sense) return usdt::fail(std::move(sense.error()));
  auto question = std::make_shared<usdt::TableQuestion>();
  question->extremes = (given->flags & USDTC_TABLE_EXTREMES) != 0;
  question->reals = question->real_sums = (given->flags & USDTC_TABLE_REALS) != 0;
  if (given->max_rows != 0) question->max_rows = given->max_rows;
  if (given->by) {
    auto keys = usdt::parse_expressions(given->by);
    if (!keys) return usdt::fail(keys.error().within("by"));
    for (const usdt::Expression& key : *keys)
      if (is_stack(key)) return invalid(fmt::format("by: {}: stacks are keys of rows in C++ alone", key.text));
    question->keys = std::move(*keys);
  }
  if (given->value) {
    auto value = parsed(given->value, "value");
    if (!value) return usdt::fail(std::move(value.error()));
    question->value = std::move(*value);
  }
  if (given->histogram)
    if (auto added = add_histogram(*given, asked, *question); !added) return usdt::fail(std::move(added.error()));
  asked.question = std::move(question);
  return asked;
}

usdt::Result<std::shared_ptr<const usdt::Expression>> read_where(const char* given) {
  if (!given) return nullptr;
  auto where = parsed(given, "where");
  if (!where) return usdt::fail(std::move(where.error()));
  return std::make_shared<const usdt::Expression>(std::move(*where));
}

/// A row of which the buckets are in `ranges`.
struct Row : usdt::TableRow {
  struct Range {
    usdt::Bucket bucket;          // of integers
    usdt::RealBucket reals = {};  // of reals, and then the other one is 0
    std::uint64_t count = 0;
  };
  std::vector<Range> ranges = {};
};

}  // namespace usdtc

struct usdtc_rows {
  std::shared_ptr<const usdtc::Planned> planned;
  std::vector<usdt::TableColumn> keys;              // without that of the histogram
  std::optional<usdt::ExpressionType> value = {};   // if it is a real
  std::optional<usdt::ExpressionType> ranges = {};  // those of the histogram, if they are of reals
  bool extremes = false;
  std::vector<usdtc::Row> rows = {};
};

namespace usdtc {
namespace {

bool is_real(const std::optional<usdt::ExpressionType>& type) {
  return type == usdt::ExpressionType::real32 || type == usdt::ExpressionType::real64;
}

Row::Range range_of(const AskedTable& asked, const std::optional<usdt::ExpressionType>& reals,
                    const usdt::TableRow& row) {
  if (reals) return {{}, asked.real_bucket(*reals, row.keys.back()), row.count};
  return {asked.bucket(row.keys.back()), {}, row.count};
}

bool is_before(const Row::Range& a, const Row::Range& b) {
  return std::tie(a.bucket.first, a.reals.first, a.reals.end) < std::tie(b.bucket.first, b.reals.first, b.reals.end);
}

/// The rows whose keys differ in the bucket alone become one.
std::vector<Row> folded(const AskedTable& asked, const std::optional<usdt::ExpressionType>& reals,
                        std::vector<usdt::TableRow>&& rows) {
  std::map<std::vector<usdt::TableKey>, Row> all;
  for (usdt::TableRow& row : rows) {
    const bool has_bucket = asked.histogram != Histogram::none;
    std::vector<usdt::TableKey> keys = row.keys;
    if (has_bucket) keys.pop_back();
    Row& into = all[keys];
    into.keys = std::move(keys);
    into.add(row);
    if (has_bucket) into.ranges.push_back(range_of(asked, reals, row));
  }
  std::vector<Row> out;
  for (auto& [keys, row] : all) {
    std::sort(row.ranges.begin(), row.ranges.end(), is_before);
    out.push_back(std::move(row));
  }
  return out;
}

usdtc_row row_of(const usdtc_rows& rows, const Row& row) {
  usdtc_row out{};
  out.count = row.count;
  if (rows.value) {
    out.flags = USDTC_ROW_REAL;
    out.real_sum = row.real_sum.value();
    if (rows.extremes) {
      out.real_minimum = usdt::real_of_extreme(*rows.value, row.minimum);
      out.real_maximum = usdt::real_of_extreme(*rows.value, row.maximum);
    }
  } else {
    out.sum = wide_of(row.sum);
    out.minimum = wide_of(row.minimum);
    out.maximum = wide_of(row.maximum);
  }
  out.key_count = static_cast<std::uint32_t>(row.keys.size());
  out.range_count = static_cast<std::uint32_t>(row.ranges.size());
  return out;
}

usdtc_value key_of(const usdtc_rows& rows, const usdt::TableColumn& column, const usdt::TableKey& key) {
  usdtc_value out{};
  if (const auto* text = std::get_if<usdt::TableText>(&key)) {
    set_text(out, text->bytes, text->truncated);
    return out;
  }
  if (const auto* real = std::get_if<usdt::TableReal>(&key)) {
    out.kind = USDTC_VALUE_FLOAT;
    out.number.f = real->value;
    return out;
  }
  out.kind = std::holds_alternative<std::uint64_t>(key) ? USDTC_VALUE_UNSIGNED : USDTC_VALUE_SIGNED;
  out.number.i = usdt::integer_of(key);
  if (column.field == usdt::HitField::probe) {
    out.kind = USDTC_VALUE_TEXT;
    out.text = text_of(rows.planned->full_names[out.number.u]);
  }
  if (column.arg) out.enumerator = text_of(usdt::enumerator_name(*column.arg, out.number.u));
  return out;
}

/// Row `n`; null: there are fewer.
const Row* row_at(const usdtc_rows& rows, std::size_t n) { return n < rows.rows.size() ? &rows.rows[n] : nullptr; }

}  // namespace

usdtc_rows* rows_of(const std::shared_ptr<const Planned>& planned, const AskedTable& asked,
                    const usdt::PlannedTable& table, std::vector<usdt::TableRow>&& rows) {
  auto out = std::make_unique<usdtc_rows>(usdtc_rows{.planned = planned, .keys = table.keys});
  if (is_real(table.value)) out->value = table.value;
  out->extremes = table.extremes;
  if (asked.histogram != Histogram::none && !out->keys.empty()) {
    out->ranges = out->keys.back().ranges_of;
    out->keys.pop_back();
  }
  out->rows = folded(asked, out->ranges, std::move(rows));
  return out.release();
}

}  // namespace usdtc

extern "C" {

size_t usdtc_rows_count(const usdtc_rows* rows) { return rows ? rows->rows.size() : 0; }

const char* usdtc_rows_key_name(const usdtc_rows* rows, size_t key) {
  return rows && key < rows->keys.size() ? rows->keys[key].label.c_str() : nullptr;
}

int usdtc_rows_row(const usdtc_rows* rows, size_t n, usdtc_row* out, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!rows) return usdtc::invalid("the rows are NULL");
    const usdtc::Row* row = usdtc::row_at(*rows, n);
    if (!row) return usdtc::no_more("row", n, rows->rows.size());
    return usdtc::write_struct(usdtc::row_of(*rows, *row), out, usdtc::kRow, "usdtc_row");
  });
}

int usdtc_rows_key(const usdtc_rows* rows, size_t n, size_t key, usdtc_value* value, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!rows) return usdtc::invalid("the rows are NULL");
    const usdtc::Row* row = usdtc::row_at(*rows, n);
    if (!row) return usdtc::no_more("row", n, rows->rows.size());
    if (key >= row->keys.size()) return usdtc::no_more("key", key, row->keys.size());
    return usdtc::write_struct(usdtc::key_of(*rows, rows->keys[key], row->keys[key]), value, usdtc::kValue,
                               "usdtc_value");
  });
}

int usdtc_rows_range(const usdtc_rows* rows, size_t n, size_t range, usdtc_range* out, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    if (!rows) return usdtc::invalid("the rows are NULL");
    const usdtc::Row* row = usdtc::row_at(*rows, n);
    if (!row) return usdtc::no_more("row", n, rows->rows.size());
    if (range >= row->ranges.size()) return usdtc::no_more("range", range, row->ranges.size());
    usdtc_range found{};
    found.count = row->ranges[range].count;
    if (rows->ranges) {
      found.flags = USDTC_RANGE_REAL;
      found.real_first = row->ranges[range].reals.first;
      found.real_end = row->ranges[range].reals.end;
    } else {
      found.first = usdtc::wide_of(row->ranges[range].bucket.first);
      found.last = usdtc::wide_of(row->ranges[range].bucket.last);
    }
    return usdtc::write_struct(found, out, usdtc::kRange, "usdtc_range");
  });
}

void usdtc_rows_free(usdtc_rows* rows) { delete rows; }
}
