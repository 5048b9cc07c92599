// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

#include "expr/context_words.hpp"
#include "expr/glob.hpp"
#include "expr/numbers.hpp"
#include "expr/row.hpp"
#include "expr/site_words.hpp"
#include "usdt/table.hpp"

namespace usdt {
inline namespace v1 {
namespace {

using Node = TypedExpression::Node;

/// Units in a weight of 1: integers are exact, others to a thousandth.
constexpr std::uint64_t kWhole = 1024;

std::uint64_t parts_of(double weight) { return static_cast<std::uint64_t>(std::llround(weight * double{kWhole})); }

void multiply(TableRow& row, std::uint64_t by) {
  row.count *= by;
  row.sum *= static_cast<Int128>(by);
}

/// Back to whole hits.
void round_parts(TableRow& row) {
  const Int128 whole = kWhole;
  const Int128 half = kWhole / 2;
  row.count = (row.count + kWhole / 2) / kWhole;
  row.sum = (row.sum < 0 ? row.sum - half : row.sum + half) / whole;
}

std::optional<TableKey> stack_of(HitField field, const HitFacts& facts) {
  const Result<Stack>* stack = facts.stack(field);
  if (stack == nullptr) return std::nullopt;
  TableStack key{.kernel = field == HitField::kstack};
  if (!*stack)
    key.why_none = stack->error().message;
  else if ((*stack)->frames.empty())
    key.why_none = expr::why_no_stack(field);
  else
    key.names = std::make_shared<const Stack>(**stack);
  return key;
}

/// Makes the key that tells frames apart, in whatever process: by addresses where there is nothing else.
auto identity(const Frame& frame) {
  const bool nameless = frame.function.empty() && !frame.offset;
  return std::tuple(std::string_view(frame.function), frame.distance, std::string_view(frame.module),
                    std::string_view(frame.build_id), frame.offset.value_or(FileOffset()).value,
                    std::string_view(frame.source), frame.line, frame.definition_line, frame.definition_column,
                    frame.tier, std::string_view(frame.language), frame.inlined, frame.issue,
                    std::string_view(frame.detail), nameless ? frame.address.value : 0);
}

bool names_before(const Stack& a, const Stack& b) {
  if (a.end != b.end) return a.end < b.end;
  return std::lexicographical_compare(a.frames.begin(), a.frames.end(), b.frames.begin(), b.frames.end(),
                                      [](const Frame& x, const Frame& y) { return identity(x) < identity(y); });
}

std::optional<TableKey> key_of(const Node& key, std::uint32_t size, const TypedExpression& question,
                               const HitFacts& facts) {
  if (key.type == ExpressionType::stack) return stack_of(static_cast<HitField>(key.bits), facts);
  if (key.type == ExpressionType::text && expr::is_site_word(key)) {
    auto text = facts.site_text(static_cast<HitField>(key.bits));
    return text ? std::optional<TableKey>(TableText{std::move(*text), false}) : std::nullopt;
  }
  if (key.op == Operator::field && expr::is_context_word(static_cast<HitField>(key.bits))) {
    const auto field = static_cast<HitField>(key.bits);
    const auto bytes = facts.context_bytes(field);
    return bytes ? std::optional<TableKey>(TableText{expr::context_digits(field, *bytes), false}) : std::nullopt;
  }
  if (key.op == Operator::attribute) {
    auto text = facts.trace_attribute(key.text);
    return text ? std::optional<TableKey>(TableText{std::move(*text), false}) : std::nullopt;
  }
  if (key.op == Operator::fingerprint) {
    const Node& of = key.of[0];
    auto text = facts.text(question.args()[of.bits]);
    if (!text) return std::nullopt;
    const std::size_t nul = expr::ends_at_nul(of) ? text->find('\0') : text->npos;
    const bool cut = nul == text->npos && facts.is_cut(question.args()[of.bits]);
    text = text->substr(0, std::min(nul, expr::kLongestLook));
    return expr::Fingerprint::of(*text, cut || text->size() == expr::kLongestLook).key();
  }
  if (key.type == ExpressionType::text) {
    const bool name = key.op == Operator::field;
    auto text = name ? facts.comm() : facts.text(question.args()[key.bits]);
    if (!text) return std::nullopt;
    const std::size_t nul = expr::ends_at_nul(key) ? text->find('\0') : text->npos;
    const bool cut = nul == text->npos && !name && facts.is_cut(question.args()[key.bits]);
    text = text->substr(0, nul);
    if (name) return TableText{std::string(*text), false};
    if (text->size() + 1 < size && cut) return std::nullopt;
    // As the kernel's keys, whose last byte says how many there are.
    return TableText{std::string(text->substr(0, size - 1)), text->size() + 1 >= size};
  }
  const auto bits = evaluate(question, key, facts);
  if (!bits) return std::nullopt;
  if (expr::is_real(key.type)) return TableReal{expr::real_of(key.type, expr::key_of_real(key.type, *bits))};
  if (key.type == ExpressionType::unsigned_integer) return *bits;
  return static_cast<std::int64_t>(*bits);
}

/// As the kernel's programs have it: of a real its order_key(). Nothing: it is no number.
std::optional<Int128> number_of(const Node& value, std::uint64_t bits) {
  if (expr::is_real(value.type)) {
    const double real = expr::real_of(value.type, bits);
    return real != real ? std::nullopt : std::optional(static_cast<Int128>(expr::order_key(value.type, bits)));
  }
  return value.type == ExpressionType::unsigned_integer ? static_cast<Int128>(bits)
                                                        : static_cast<Int128>(static_cast<std::int64_t>(bits));
}

}  // namespace

bool TableStack::is_before(const TableStack& other) const {
  if (kernel != other.kernel) return other.kernel;
  if (why_none != other.why_none) return why_none < other.why_none;
  if ((names == nullptr) != (other.names == nullptr)) return other.names != nullptr;
  if (names) return names_before(*names, *other.names);
  return std::tie(pid, caller, addresses) < std::tie(other.pid, other.caller, other.addresses);
}

void TableRow::add(const TableRow& other) {
  minimum = count == 0 ? other.minimum : std::min(minimum, other.minimum);
  maximum = count == 0 ? other.maximum : std::max(maximum, other.maximum);
  count += other.count;
  sum += other.sum;
  real_sum.add(other.real_sum);
  variance += other.variance;
}

void TableRow::subtract(const TableRow& some) {
  count -= some.count;
  sum -= some.sum;
  real_sum.subtract(some.real_sum);
  variance -= some.variance;
}

void TableRow::scale(double weight) {
  multiply(*this, parts_of(weight));
  round_parts(*this);
  real_sum.scale(weight);
}

/// By their keys; counts and sums in fractions of a hit.
struct TableBuilder::Rows : std::map<std::vector<TableKey>, TableRow> {};

TableBuilder::TableBuilder(PlannedTable table) : table_(std::move(table)), rows_(std::make_unique<Rows>()) {}
TableBuilder::~TableBuilder() = default;
TableBuilder::TableBuilder(TableBuilder&&) noexcept = default;
TableBuilder& TableBuilder::operator=(TableBuilder&&) noexcept = default;

TableBuilder::Added TableBuilder::add(const TypedExpression& question, const HitFacts& facts, double weight) {
  const Node& root = question.root();
  const auto counts = evaluate(question, root.of[0], facts);
  if (!counts) return Added::undecided;
  if (*counts == 0) return Added::rejected;
  const expr::RowLayout layout = expr::row_layout(root, table_.key_bytes);
  std::vector<TableKey> keys;
  for (std::size_t i = 0; i < layout.keys.size(); ++i) {
    auto key = key_of(root.of[i + 1].of[0], layout.keys[i].size, question, facts);
    if (!key) return Added::undecided;
    keys.push_back(std::move(*key));
  }
  TableRow hit{.count = 1};
  std::optional<double> real;  // to be added up
  if (layout.value) {
    const Node& value = root.of.back().of[0];
    const auto bits = evaluate(question, value, facts);
    if (!bits) return Added::undecided;
    const auto number = number_of(value, *bits);
    if (!number) return Added::undecided;
    hit.minimum = hit.maximum = *number;
    if (!expr::is_real(value.type))
      hit.sum = *number;
    else if (table_.real_sums)
      real = expr::real_of(value.type, *bits);
  }
  multiply(hit, parts_of(weight));
  auto row = rows_->find(keys);
  if (row == rows_->end()) {
    if (rows_->size() >= table_.max_rows) return Added::table_full;
    row = rows_->emplace(keys, TableRow{.keys = keys}).first;
  }
  row->second.add(hit);
  if (real) row->second.real_sum.add(*real * weight);
  return Added::row;
}

std::vector<TableRow> TableBuilder::rows() const {
  std::vector<TableRow> all;
  for (const auto& [keys, row] : *rows_) round_parts(all.emplace_back(row));
  return all;
}

}  // namespace v1
}  // namespace usdt
