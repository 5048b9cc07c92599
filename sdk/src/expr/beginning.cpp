// SPDX-License-Identifier: BSD-2-Clause
#include "expr/beginning.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "expr/field_readers.hpp"

namespace usdt::expr {
namespace {

void collect(const TypedExpression::Node& node, std::vector<std::uint8_t>& facts) {
  const std::uint8_t fact = node.op == Operator::field ? reader_of(static_cast<HitField>(node.bits)).beginning : 0;
  if (fact != 0 && std::ranges::find(facts, fact) == facts.end()) {
    facts.push_back(fact);
    if (fact == USDT_BEGIN_COMM) facts.push_back(USDT_BEGIN_COMM_REST);
  }
  for (const TypedExpression::Node& each : node.of) collect(each, facts);
}

}  // namespace

std::vector<std::uint8_t> beginning_facts(const TypedExpression& question) {
  std::vector<std::uint8_t> facts;
  collect(question.root(), facts);
  return facts;
}

std::string words_of_beginning() {
  std::vector<std::string_view> words;
  for (const FieldReader& each : kFieldReaders)
    if (each.beginning != 0 && each.from != FieldReader::From::text) words.push_back(to_string(each.field));
  const std::string_view last = words.back();
  words.pop_back();
  return fmt::format("{} and {} are one each, {} is two", fmt::join(words, ", "), last, to_string(HitField::comm));
}

bool asks_for_owner(const TypedExpression& question) {
  return std::ranges::any_of(kHitFields, [&](const HitFieldInfo& each) {
    return each.source == HitFieldSource::owner && question.asks(each.field);
  });
}

}  // namespace usdt::expr
