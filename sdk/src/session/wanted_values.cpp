// SPDX-License-Identifier: BSD-2-Clause
#include "session/wanted_values.hpp"

#include <algorithm>
#include <variant>

#include "expr/attributes.hpp"

namespace usdt::session {
namespace {

void ask_for_text(const PrintItem& item, TextOptions& texts) {
  if (!item.gives_way()) return;
  if (item.form == PrintItem::Form::value) texts.described.push_back(arg_name_of(item.value));
  if (item.form != PrintItem::Form::text) return;
  const ArgName text = arg_name_of(item.value);
  if (item.length) {
    texts.bounded.push_back({text, *item.length});
  } else if (const auto* number = std::get_if<std::uint8_t>(&text)) {
    texts.numbers.push_back(*number);
  } else {
    texts.names.push_back(std::get<std::string>(text));
  }
}

/// Returns the values that a print list wants besides the arguments; for an empty one, the contents of structs and
/// texts.
ValueOptions values_of(const PrintList& list, const Question& question) {
  ValueOptions values;
  const auto add = [&](const ValuePath& path) {
    if (std::ranges::find(values.paths, path.text, &ValuePath::text) == values.paths.end())
      values.paths.push_back(path);
  };
  for (const PrintItem& item : list) {
    if (item.computed) std::ranges::for_each(item.computed->values, add);
    if (!item.gives_way()) continue;
    if (item.size) add(*item.size);
    add(item.value);
  }
  values.open = list.empty() && !question.view.no_events();
  values.depth = question.values.depth;
  return values;
}

/// Returns the values that a print list shows as text; for an empty one, those that are text by their types or memory.
TextOptions texts_of(const PrintList& list, const Question& question) {
  TextOptions texts;
  for (const PrintItem& item : list) ask_for_text(item, texts);
  texts.typed = list.empty() && !question.view.no_events();
  texts.likely = texts.typed && question.values.likely_texts.value_or(true);
  return texts;
}

/// Asks for the texts that an expression is about.
void ask_for_texts(const Expression& expression, const ExpressionNode& node, TextOptions& texts) {
  for (const ExpressionNode& each : node.of) ask_for_texts(expression, each, texts);
  if (node.op != Operator::text_of || node.of[0].op != Operator::value) return;
  PrintItem item;
  item.form = PrintItem::Form::text;
  item.value = expression.values[node.of[0].bits];
  if (node.of.size() > 1 && node.of[1].op == Operator::value)
    item.length = arg_name_of(expression.values[node.of[1].bits]);
  ask_for_text(item, texts);
}

}  // namespace

std::vector<const Expression*> expressions_of_rows(const Question& question) {
  std::vector<const Expression*> asked;
  if (question.where && (question.view.in_flight || expr::asks_attribute(*question.where)))
    asked.push_back(question.where.get());
  if (!question.view.in_flight && !question.view.of_events) return asked;
  if (question.view.variance) asked.push_back(question.view.variance.get());
  if (!question.view.question) return asked;
  for (const Expression& key : question.view.question->keys) asked.push_back(&key);
  if (question.view.question->value) asked.push_back(&*question.view.question->value);
  return asked;
}

WantedValues wanted_by(const PrintChoice& choice, const Question& question) {
  WantedValues wanted;
  // Such a key is a text where its type says so.
  const bool may_be_text = question.view.makes_rows() &&
                           std::ranges::any_of(question.view.question->keys,
                                               [](const Expression& key) { return key.root.op == Operator::value; });
  for (ListNumber i = 0; i < choice.count(); ++i) {
    wanted.texts.push_back(texts_of(choice.list(i), question));
    wanted.values.push_back(values_of(choice.list(i), question));
    wanted.texts.back().typed |= may_be_text;
    for (const Expression* asked : expressions_of_rows(question)) {
      ask_for_texts(*asked, asked->root, wanted.texts.back());
      for (const ValuePath& path : asked->values) wanted.values.back().paths.push_back(path);
    }
  }
  return wanted;
}

void choose_values(const WantedValues& wanted, const PrintChoice& choice, PlanOptions& options) {
  options.texts = wanted.texts[0];
  options.values = wanted.values[0];
  if (wanted.texts.size() == 1) return;
  options.texts_of = [&](const PointName& point) { return &wanted.texts[choice.of(point)]; };
  options.values_of = [&](const PointName& point) { return &wanted.values[choice.of(point)]; };
}

}  // namespace usdt::session
