// SPDX-License-Identifier: BSD-2-Clause
#include "expr/row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "expr/numbers.hpp"
#include "expr/site_words.hpp"
#include "parsers/declared.hpp"
#include "usdt/bpf/filter.h"

namespace usdt {
inline namespace v1 {
namespace {

using Op = Operator;

/// Gives the values of `part` their numbers in the list of all.
void renumber(ExpressionNode& node, const std::vector<ValuePath>& values, std::vector<ValuePath>& all) {
  if (node.op == Op::value) {
    const ValuePath& path = values[node.bits];
    auto known = std::ranges::find(all, path.text, &ValuePath::text);
    if (known == all.end()) known = all.insert(known, path);
    node.bits = static_cast<std::uint64_t>(known - all.begin());
  }
  for (ExpressionNode& each : node.of) renumber(each, values, all);
}

ExpressionNode integer(std::int64_t value) { return {.op = Op::integer, .bits = static_cast<std::uint64_t>(value)}; }

ExpressionNode node_of(Op op, std::vector<ExpressionNode> of) { return {.op = op, .of = std::move(of)}; }

constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kHighest = std::numeric_limits<std::int64_t>::max();

}  // namespace

Expression log2_buckets(Expression value, unsigned sub_bits) {
  value.root = node_of(Op::log2_bucket, {std::move(value.root), integer(std::min(sub_bits, 4U))});
  return value;
}

Expression fingerprint(Expression value) {
  value.root = node_of(Op::fingerprint, {std::move(value.root)});
  return value;
}

Result<Expression> linear_buckets(Expression value, std::int64_t min, std::int64_t max, std::int64_t step,
                                  unsigned digits) {
  constexpr unsigned most_digits = 18;
  if (digits == 0 && step > 0 && min<max&& static_cast<Int128>(max) - min> kHighest)
    return fail(ErrorKind::invalid_argument,
                fmt::format("no buckets from {} to {}: they are at most {} wide together", min, max, kHighest));
  if (step <= 0 || min >= max || digits > most_digits || static_cast<Int128>(max) - min > kHighest)
    return fail(ErrorKind::invalid_argument,
                fmt::format("no buckets of {:.{}f} from {:.{}f} to {:.{}f}: a step above 0, and a beginning before the "
                            "end",
                            expr::decimal(step, digits), digits, expr::decimal(min, digits), digits,
                            expr::decimal(max, digits), digits));
  value.root = node_of(Op::linear_bucket, {std::move(value.root), integer(min), integer(max), integer(step),
                                           integer(static_cast<std::int64_t>(digits))});
  return value;
}

Bucket Bucket::log2(std::int64_t key, unsigned sub_bits) {
  const bool negative = key < 0;
  const std::uint64_t number = negative ? 0 - static_cast<std::uint64_t>(key) : static_cast<std::uint64_t>(key);
  Bucket bucket{static_cast<Int128>(number), static_cast<Int128>(number)};
  if (number >> sub_bits > 1) {
    // (beyond << sub_bits) + top, with sub_bits + 1 bits of top, whose highest is set
    const std::uint64_t beyond = (number >> sub_bits) - 1;
    const std::uint64_t top = number - (beyond << sub_bits);
    bucket.first = static_cast<Int128>(top) << beyond;
    bucket.last = (static_cast<Int128>(top + 1) << beyond) - 1;
  }
  if (negative) bucket = {-bucket.last, -bucket.first};
  return bucket;
}

Bucket Bucket::linear(std::int64_t key, std::int64_t min, std::int64_t max, std::int64_t step) {
  if (key == kLowest) return {kLowest, static_cast<Int128>(min) - 1};
  if (key == kHighest) return {max, std::numeric_limits<std::uint64_t>::max()};  // whatever its type
  const Int128 first = min + static_cast<Int128>(key) * step;
  return {first, std::min(first + step, static_cast<Int128>(max)) - 1};
}

RealBucket RealBucket::log2(ExpressionType type, std::int64_t key, unsigned sub_bits) {
  if (key == 0) return {};
  const unsigned shift = expr::mantissa_bits(type) - sub_bits;
  const auto beyond_zero = static_cast<std::uint64_t>(key < 0 ? -key : key) - 1;
  const std::uint64_t first = beyond_zero << shift;
  const double low = expr::real_of(type, std::max(first, std::uint64_t{1}));  // 0 is alone
  const double high = first == expr::infinity(type) ? low : expr::real_of(type, first + (std::uint64_t{1} << shift));
  return key < 0 ? RealBucket{-high, -low} : RealBucket{low, high};
}

RealBucket RealBucket::linear(std::int64_t key, std::int64_t min, std::int64_t max, std::int64_t step,
                              unsigned digits) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (key == kLowest) return {-infinity, expr::decimal(min, digits)};
  if (key == kHighest) return {expr::decimal(max, digits), infinity};
  const Int128 first = min + static_cast<Int128>(key) * step;
  const auto end = static_cast<std::int64_t>(std::min(first + step, static_cast<Int128>(max)));
  return {expr::decimal(static_cast<std::int64_t>(first), digits), expr::decimal(end, digits)};
}

double real_of_extreme(ExpressionType type, const Int128& extreme) noexcept {
  return expr::real_of(type, expr::bits_of_order(type, static_cast<std::uint64_t>(extreme)));
}

}  // namespace v1

namespace expr {
namespace {

/// Makes `number` an integer of the other sign: number | 0 / (number is one of both signs), which has no answer where
/// the number is of the one sign alone.
void change_sign(TypedExpression::Node& number, ExpressionType to) {
  using Node = TypedExpression::Node;
  const bool to_signed = to == ExpressionType::signed_integer;
  Node bound{.op = Op::integer, .bits = to_signed ? static_cast<std::uint64_t>(kHighest) : 0};
  Node fits{.op = to_signed ? Op::less_equal : Op::greater_equal, .of = {number, std::move(bound)}};
  Node nothing{.op = Op::divide, .of = {Node{.op = Op::integer}, std::move(fits)}};
  number = Node{.op = Op::bit_or, .type = to, .of = {std::move(number), std::move(nothing)}};
}

void take_sign(TypedExpression::Node& part, ExpressionType type) {
  if (part.type == type || !is_integer(part.type) || !is_integer(type)) return;
  change_sign(part.of[0], type);
  part.type = type;
}

}  // namespace

void take_signs(TypedExpression::Node& row, const PlannedTable& table) {
  if (row.op != Op::row) return;
  for (std::size_t i = 0; i < table.keys.size(); ++i) take_sign(row.of[i + 1], table.keys[i].type);
  if (table.value) take_sign(row.of.back(), *table.value);
}

void Fingerprint::add(std::uint64_t word) noexcept {
  for (std::size_t i = 0; i < words_.size(); ++i) words_[i] = std::rotr((words_[i] ^ word) * kFactors[i], 32);
}

Fingerprint Fingerprint::of(std::string_view text, bool cut) noexcept {
  Fingerprint made;
  for (std::size_t at = 0; at <= text.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, std::min(sizeof(word), text.size() - at));
    made.add(word);
  }
  made.add(text.size());
  made.words_[1] = (made.words_[1] & ~std::uint64_t{1}) | (cut ? 1 : 0);
  return made;
}

TableText Fingerprint::key() const { return key_of(reinterpret_cast<const char*>(words_.data())); }

TableText Fingerprint::key_of(const char* bytes) {
  std::array<std::uint64_t, 2> words{};
  std::memcpy(words.data(), bytes, sizeof(words));
  return {std::string(bytes, sizeof(words)), (words[1] & 1) != 0};
}

Expression row_of(const Expression* where, const TableQuestion& table) {
  Expression made;
  made.root.op = Op::row;
  made.began = where ? where->began : 0;
  made.root.bits = table.keys.size();
  const auto add = [&](const Expression& part) {
    ExpressionNode root = part.root;
    made.began = std::max(made.began, part.began);
    renumber(root, part.values, made.values);
    made.root.of.push_back({.op = Op::part, .text = part.text, .of = {std::move(root)}});
  };
  static const Expression kAlways{.text = "1", .root = integer(1), .values = {}};
  add(where ? *where : kAlways);
  for (const Expression& key : table.keys) add(key);
  if (table.value) add(*table.value);
  return made;
}

namespace {

constexpr std::uint32_t kComm = 16, kShortestText = 16, kStack = sizeof(usdt_row_stack);

/// Returns the size of a key that is no text of an argument.
std::uint32_t size_of(const TypedExpression::Node& key) {
  if (key.type == ExpressionType::stack) return kStack;
  static_assert(sizeof(Fingerprint) == kComm);
  const bool is_whole = key.op == Op::attribute;  // no row of the kernel has it
  return key.type == ExpressionType::text && !is_site_word(key) && !is_whole ? kComm : 8;
}

}  // namespace

ExpressionNode linear_bucket_of_integer(const ExpressionNode& bucket) {
  const ExpressionNode &value = bucket.of[0], &min = bucket.of[1], &max = bucket.of[2], &step = bucket.of[3];
  // value < min ? LOWEST : value >= max ? HIGHEST : (value - min) / step
  auto number = node_of(Op::divide, {node_of(Op::subtract, {value, min}), step});
  auto below_end =
      node_of(Op::conditional, {node_of(Op::greater_equal, {value, max}), integer(kHighest), std::move(number)});
  return node_of(Op::conditional, {node_of(Op::less, {value, min}), integer(kLowest), std::move(below_end)});
}

std::int64_t linear_bucket_number(std::size_t bounds_passed, std::size_t bounds) noexcept {
  if (bounds_passed == 0) return kLowest;
  return bounds_passed == bounds ? kHighest : static_cast<std::int64_t>(bounds_passed - 1);
}

RowLayout row_layout(const TypedExpression::Node& row, std::uint32_t key_bytes) {
  RowLayout layout{.value = row.of.size() > row.bits + 1};
  std::uint32_t fixed = 0, texts = 0;
  for (std::size_t i = 1; i <= row.bits; ++i) {
    const TypedExpression::Node& key = row.of[i].of[0];
    if (key.op == Op::text_of)
      ++texts;
    else
      fixed += size_of(key);
  }
  std::uint32_t text = texts == 0 || fixed > key_bytes ? 0 : (key_bytes - fixed) / texts / 8 * 8;
  text = std::max(text, kShortestText);
  for (std::size_t i = 1; i <= row.bits; ++i) {
    const TypedExpression::Node& key = row.of[i].of[0];
    const std::uint32_t size = key.op == Op::text_of ? text : size_of(key);
    layout.keys.push_back({layout.bytes, size});
    layout.bytes += size;
  }
  return layout;
}

namespace {

/// Gives a key the name and the meaning that the question says; without a meaning it has that of its argument.
void call(TableColumn& column, const Declaration& called) {
  column.label = called.name;
  if (!parsers::has_meaning(called) || !is_integer(column.type)) return;
  if (!column.arg) column.arg.emplace().type = {.size = 8, .is_signed = column.type == ExpressionType::signed_integer};
  Declaration declaration = called;
  declaration.type = column.arg->c_type();
  parsers::set_meaning(column.arg->type, declaration);
  column.arg->declaration = std::make_shared<const Declaration>(std::move(declaration));
}

}  // namespace

Result<PlannedTable> planned_table(const TypedExpression& row, const std::vector<Arg>& args,
                                   const TableQuestion& question) {
  const RowLayout layout = row_layout(row.root(), question.key_bytes);
  if (layout.bytes > question.key_bytes)
    return fail(ErrorKind::limit, fmt::format("keys of {} bytes: at most {} fit; a number takes 8, comm, a stack, "
                                              "trace_id and span_id 16, a text 16 or more",
                                              layout.bytes, question.key_bytes));
  PlannedTable table{
      .keys = {}, .extremes = question.extremes, .max_rows = question.max_rows, .key_bytes = question.key_bytes};
  for (std::size_t i = 0; i < layout.keys.size(); ++i) {
    const TypedExpression::Node& part = row.root().of[i + 1];
    const TypedExpression::Node& key = part.of[0];
    TableColumn& column = table.keys.emplace_back(TableColumn{
        .label = part.text, .type = key.type, .offset = layout.keys[i].offset, .size = layout.keys[i].size});
    if (key.op == Op::field) column.field = static_cast<HitField>(key.bits);
    if (key.type == ExpressionType::stack && std::ranges::count(table.keys, column.field, &TableColumn::field) > 1)
      return fail(ErrorKind::invalid_argument, fmt::format("{}: once is enough among the keys", part.text));
    if (key.op == Op::hex) column.form = KeyForm::hex;
    if (key.op == Op::ntop) column.form = KeyForm::ipv4;
    if (key.op == Op::fingerprint) column.form = KeyForm::fingerprint;
    if (key.op == Op::value || key.op == Op::text_of) column.arg = args[row.args()[key.bits]];
    if (const auto& called = question.keys[i].called) call(column, *called);
    if ((key.op == Op::log2_bucket || key.op == Op::linear_bucket) && is_real(key.of[0].type))
      column.ranges_of = key.of[0].type;
    if (!question.reals && (is_real(key.type) || column.ranges_of))
      return fail(ErrorKind::invalid_argument, fmt::format("{} is a real, of which there are no keys here", part.text));
  }
  if (layout.value) table.value = row.root().of.back().type;
  if (!table.value || !is_real(*table.value)) return table;
  table.real_sums = question.real_sums;
  if (!question.reals || (!question.extremes && !question.real_sums))
    return fail(ErrorKind::invalid_argument,
                fmt::format("{} is a real, and what is added up here are whole numbers", row.root().of.back().text));
  return table;
}

Result<PlannedTable> planned_kernel_table(const TypedExpression& row, const std::vector<Arg>& args,
                                          const TableQuestion& question) {
  if (question.key_bytes > TableQuestion::kMostKeyBytes)
    return fail(ErrorKind::limit,
                fmt::format("keys of {} bytes: {} is what rows of the kernel have; EventTable has more",
                            question.key_bytes, TableQuestion::kMostKeyBytes));
  return planned_table(row, args, question);
}

std::string_view why_no_stack(HitField field) noexcept {
  return field == HitField::kstack ? "a process that is not in the kernel has no stack there"
                                   : "a thread of the kernel has no stack of a process";
}

namespace {

bool has_names(const std::optional<Arg>& arg) {
  return arg && arg->declaration && !arg->declaration->enumerators.empty();
}

/// Numbers have the same names, if any.
bool same_names(const std::optional<Arg>& a, const std::optional<Arg>& b) {
  if (!has_names(a) || !has_names(b)) return has_names(a) == has_names(b);
  return a->type.size == b->type.size && a->declaration->enumerators == b->declaration->enumerators;
}

/// Integers can be in one column, whatever their signs.
bool same_kind(ExpressionType a, ExpressionType b) { return a == b || (is_integer(a) && is_integer(b)); }

}  // namespace

void join_signs(PlannedTable& table, const PlannedTable& more) {
  const auto join = [](ExpressionType& type, ExpressionType other) {
    if (type != other && same_kind(type, other)) type = ExpressionType::signed_integer;
  };
  for (std::size_t i = 0; i < std::min(table.keys.size(), more.keys.size()); ++i)
    join(table.keys[i].type, more.keys[i].type);
  if (table.value && more.value) join(*table.value, *more.value);
}

std::string why_other_rows(const PlannedTable& table, const PlannedTable& more) {
  if (table.keys.size() != more.keys.size() || table.value.has_value() != more.value.has_value() ||
      table.extremes != more.extremes || table.real_sums != more.real_sums || table.max_rows != more.max_rows)
    return "a table of other keys or values";
  for (std::size_t i = 0; i < table.keys.size(); ++i) {
    const TableColumn &key = table.keys[i], &other = more.keys[i];
    if (!same_kind(key.type, other.type) || key.field != other.field || key.offset != other.offset ||
        key.size != other.size || key.form != other.form || key.ranges_of != other.ranges_of)
      return fmt::format("{}: a key of another type than at the sites before", key.label);
    if (!same_names(key.arg, other.arg))
      return fmt::format("{}: its values have other names than at the sites before", key.label);
  }
  return !table.value || same_kind(*table.value, *more.value) ? "" : "a value of another type than at the sites before";
}

}  // namespace expr
}  // namespace usdt
