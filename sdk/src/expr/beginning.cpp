// SPDX-License-Identifier: BSD-2-Clause
#include "expr/beginning.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "expr/field_readers.hpp"

namespace usdt::expr {
namespace {

using Facts = std::vector<std::uint8_t>;

bool is_of_context(HitField field) { return info_of(field).source == HitFieldSource::context; }

/// A text has two.
void add(HitField field, Facts& facts) {
  const std::uint8_t fact = reader_of(field).beginning;
  if (fact == 0 || std::ranges::find(facts, fact) != facts.end()) return;
  facts.push_back(fact);
  if (fact == USDT_BEGIN_COMM || fact == USDT_BEGIN_TRACE) facts.push_back(static_cast<std::uint8_t>(fact + 1));
}
static_assert(USDT_BEGIN_COMM_REST == USDT_BEGIN_COMM + 1 && USDT_BEGIN_TRACE_REST == USDT_BEGIN_TRACE + 1);

template <class Wanted>
void collect(const TypedExpression::Node& node, Wanted wanted, Facts& facts) {
  if (node.op == Operator::field && wanted(static_cast<HitField>(node.bits)))
    add(static_cast<HitField>(node.bits), facts);
  for (const TypedExpression::Node& each : node.of) collect(each, wanted, facts);
}

}  // namespace

std::vector<std::uint8_t> beginning_facts(const TypedExpression& question) {
  Facts facts;
  collect(
      question.root(), [](HitField) { return true; }, facts);
  return facts;
}

std::vector<std::uint8_t> context_facts(const TypedExpression& question) {
  Facts facts;
  collect(question.root(), is_of_context, facts);
  return facts;
}

std::string words_of_beginning() {
  std::vector<std::string_view> words;
  for (const FieldReader& each : kFieldReaders)
    if (each.beginning != 0 && each.from != FieldReader::From::text) words.push_back(to_string(each.field));
  words.push_back(to_string(HitField::span_id));
  const std::string_view last = words.back();
  words.pop_back();
  return fmt::format("{} and {} are one each, {} and {} are two", fmt::join(words, ", "), last,
                     to_string(HitField::comm), to_string(HitField::trace_id));
}

bool asks_for(const TypedExpression& question, HitFieldSource source) {
  return std::ranges::any_of(
      kHitFields, [&](const HitFieldInfo& each) { return each.source == source && question.asks(each.field); });
}

}  // namespace usdt::expr
