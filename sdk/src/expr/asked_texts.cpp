// SPDX-License-Identifier: BSD-2-Clause
#include "expr/asked_texts.hpp"

#include <algorithm>

namespace usdt::expr {
namespace {

using Node = TypedExpression::Node;

void collect(const TypedExpression& question, const Node& node, const std::vector<Arg>& args,
             std::vector<AskedText>& texts) {
  for (const Node& each : node.of) collect(question, each, args, texts);
  if (node.op != Operator::text_of) return;
  AskedText text{.text = question.args()[node.bits]};
  if (!node.of.empty())  // of an array of characters: how many there are
    text.length = node.of[0].op == Operator::value ? question.args()[node.of[0].bits] : args[text.text].length;
  const bool later = args[text.text].result || (text.length && args[*text.length].result);
  if (!later && std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
}

}  // namespace

std::vector<AskedText> texts_of_beginning(const TypedExpression& question, const std::vector<Arg>& args) {
  std::vector<AskedText> texts;
  collect(question, question.root(), args, texts);
  return texts;
}

}  // namespace usdt::expr
