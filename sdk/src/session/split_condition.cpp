// SPDX-License-Identifier: BSD-2-Clause
#include "session/split_condition.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "expr/attributes.hpp"

namespace usdt::session {
namespace {

void add_operands(const ExpressionNode& node, std::vector<const ExpressionNode*>& all) {
  if (node.op != Operator::logical_and) return all.push_back(&node);
  for (const ExpressionNode& each : node.of) add_operands(each, all);
}

/// The condition that all of the operands hold. Its text is that of the whole, as columns of errors are.
std::shared_ptr<const Expression> all_of(const Expression& whole, const std::vector<const ExpressionNode*>& operands) {
  if (operands.empty()) return nullptr;
  auto made = std::make_shared<Expression>(
      Expression{.text = whole.text, .root = *operands.front(), .values = whole.values, .began = whole.began});
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const std::uint32_t column = made->root.column;
    ExpressionNode both{.op = Operator::logical_and, .column = column};
    both.of = {std::move(made->root), *operands[i]};
    made->root = std::move(both);
  }
  return made;
}

}  // namespace

SplitCondition split_condition(const std::shared_ptr<const Expression>& where) {
  if (!where || !expr::asks_attribute(*where)) return {.of_hits = where, .of_events = nullptr};
  std::vector<const ExpressionNode*> operands, of_hits, of_events;
  add_operands(where->root, operands);
  std::ranges::partition_copy(operands, std::back_inserter(of_events), std::back_inserter(of_hits),
                              [](const ExpressionNode* each) { return expr::asks_attribute(*each); });
  return {.of_hits = all_of(*where, of_hits), .of_events = all_of(*where, of_events)};
}

bool asks_events(const Question& question) {
  return (question.where && expr::asks_attribute(*question.where)) ||
         (question.view.question && expr::asks_attribute(*question.view.question));
}

}  // namespace usdt::session
