// SPDX-License-Identifier: BSD-2-Clause
// Tables: what is asked for, and its rows.
#include <utility>
#include <variant>

#include "handles.hpp"

namespace usdtc {
namespace {

bool is_stack(const usdt::Expression& key) {
  return key.root.op == usdt::Operator::field &&
         usdt::info_of(static_cast<usdt::HitField>(key.root.bits)).type == usdt::ExpressionType::stack;
}

usdt::Result<usdt::Expression> parsed(const char* text, std::string_view what) {
  auto expression = usdt::parse_expression(text);
  if (!expression) return usdt::fail(expression.error().within(std::string(what)));
  return expression;
}

usdt::Result<void> add_histogram(const usdtc_table& given, usdt::View& view, usdt::TableQuestion& question) {
  auto value = parsed(given.histogram, "histogram");
  if (!value) return usdt::fail(std::move(value.error()));
  if (given.step == 0) {
    if (given.histogram_detail > 4)
      return invalid(fmt::format("a histogram_detail of {} is more than 4", given.histogram_detail));
    view.histogram = usdt::Histogram::log2;
    view.sub_bits = given.histogram_detail;
    question.keys.push_back(usdt::log2_buckets(std::move(*value), view.sub_bits));
    return {};
  }
  auto buckets = usdt::linear_buckets(std::move(*value), given.from, given.to, given.step, given.digits);
  if (!buckets) return usdt::fail(buckets.error().within("histogram"));
  view.histogram = usdt::Histogram::linear;
  view.from = given.from;
  view.to = given.to;
  view.step = given.step;
  view.digits = given.digits;
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

usdt::Result<usdt::View> read_table(const usdtc_table* pointer) {
  usdt::View view;
  view.order = usdt::RowOrder::keys;
  if (!pointer) return view;
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
    if (auto added = add_histogram(*given, view, *question); !added) return usdt::fail(std::move(added.error()));
  view.question = std::move(question);
  return view;
}

usdt::Result<std::shared_ptr<const usdt::Expression>> read_where(const char* given) {
  if (!given) return nullptr;
  auto where = parsed(given, "where");
  if (!where) return usdt::fail(std::move(where.error()));
  return std::make_shared<const usdt::Expression>(std::move(*where));
}

namespace {

usdtc_row row_of(const usdtc_rows& rows, const usdt::ArrangedRow& row) {
  usdtc_row out{};
  out.count = row.count;
  if (const auto sum = row.real(usdt::RowNumber::sum)) {
    out.flags = USDTC_ROW_REAL;
    out.real_sum = *sum;
    if (rows.table.extremes) {
      out.real_minimum = *row.real(usdt::RowNumber::minimum);
      out.real_maximum = *row.real(usdt::RowNumber::maximum);
    }
  } else {
    out.sum = wide_of(row.sum);
    out.minimum = wide_of(row.minimum);
    out.maximum = wide_of(row.maximum);
  }
  out.key_count = static_cast<std::uint32_t>(row.keys.size());
  out.range_count = static_cast<std::uint32_t>(row.bars.size());
  if (!rows.view.shown.empty() && rows.view.shown.back() == usdt::RowNumber::distinct) {
    out.distinct = row.distinct;
    if (row.distinct_at_least) out.flags |= USDTC_ROW_DISTINCT_AT_LEAST;
  }
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
    out.text = text_of(rows.texts->full_names[out.number.u]);
  }
  if (column.arg) out.enumerator = text_of(usdt::enumerator_name(*column.arg, out.number.u));
  return out;
}

usdtc_range range_of(const usdt::ArrangedRow::Bar& bar) {
  usdtc_range out{};
  out.count = bar.count;
  if (const auto* reals = std::get_if<usdt::RealBucket>(&bar.range)) {
    out.flags = USDTC_RANGE_REAL;
    out.real_first = reals->first;
    out.real_end = reals->end;
  } else {
    out.first = wide_of(std::get<usdt::Bucket>(bar.range).first);
    out.last = wide_of(std::get<usdt::Bucket>(bar.range).last);
  }
  return out;
}

usdt::Result<const usdt::ArrangedRow*> row_at(const usdtc_rows* rows, std::size_t n) {
  if (!rows) return invalid("the rows are NULL");
  if (n >= rows->rows.size()) return no_more("row", n, rows->rows.size());
  return &rows->rows[n];
}

}  // namespace
}  // namespace usdtc

extern "C" {

size_t usdtc_rows_count(const usdtc_rows* rows) { return rows ? rows->rows.size() : 0; }

const char* usdtc_rows_key_name(const usdtc_rows* rows, size_t key) {
  return rows && key < rows->view.shown_keys(rows->table) ? rows->table.keys[key].label.c_str() : nullptr;
}

int usdtc_rows_row(const usdtc_rows* rows, size_t n, usdtc_row* out, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    const auto row = usdtc::row_at(rows, n);
    if (!row) return usdt::fail(row.error());
    return usdtc::write_struct(usdtc::row_of(*rows, **row), out, usdtc::kRow, "usdtc_row");
  });
}

int usdtc_rows_key(const usdtc_rows* rows, size_t n, size_t key, usdtc_value* value, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    const auto row = usdtc::row_at(rows, n);
    if (!row) return usdt::fail(row.error());
    const auto& keys = (*row)->keys;
    if (key >= keys.size()) return usdtc::no_more("key", key, keys.size());
    return usdtc::write_struct(usdtc::key_of(*rows, rows->table.keys[key], keys[key]), value, usdtc::kValue,
                               "usdtc_value");
  });
}

int usdtc_rows_range(const usdtc_rows* rows, size_t n, size_t range, usdtc_range* out, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    const auto row = usdtc::row_at(rows, n);
    if (!row) return usdt::fail(row.error());
    const auto& bars = (*row)->bars;
    if (range >= bars.size()) return usdtc::no_more("range", range, bars.size());
    return usdtc::write_struct(usdtc::range_of(bars[range]), out, usdtc::kRange, "usdtc_range");
  });
}

int usdtc_rows_percentile(const usdtc_rows* rows, size_t n, unsigned permille, usdtc_wide* out, usdtc_error** error) {
  return usdtc::guarded(error, [&]() -> usdt::Result<void> {
    const auto row = usdtc::row_at(rows, n);
    if (!row) return usdt::fail(row.error());
    if (!rows->view.latency) return usdtc::invalid("rows have percentiles if the question has the option \"latency\"");
    if (!out || permille > 1000) return usdtc::invalid("no place for the number, or more than 1000 of 1000 hits");
    *out = usdtc::wide_of((*row)->percentile(permille));
    return {};
  });
}

void usdtc_rows_free(usdtc_rows* rows) { delete rows; }
}
