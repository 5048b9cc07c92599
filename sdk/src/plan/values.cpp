// SPDX-License-Identifier: BSD-2-Clause
#include "plan/values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "base/try.hpp"
#include "expr/beginning.hpp"
#include "expr/compile.hpp"
#include "expr/near_names.hpp"
#include "expr/row.hpp"
#include "plan/find_value.hpp"

namespace usdt::plan {

namespace {

/// "str(p, n)": where nothing else says how long the text is.
void take_lengths(const ExpressionNode& node, const std::vector<std::size_t>& places, std::vector<Arg>& args) {
  for (const ExpressionNode& each : node.of) take_lengths(each, places, args);
  if (node.op != Operator::text_of || node.of.size() < 2) return;
  if (node.of[0].op != Operator::value || node.of[1].op != Operator::value) return;
  const std::size_t text = places[node.of[0].bits];
  const std::size_t length = places[node.of[1].bits];
  if (text >= args.size() || length >= args.size() || args[text].length) return;
  args[text].length = static_cast<std::uint8_t>(length);
}

/// Texts that are asked about without a length, by the positions of what points to them.
void find_whole_texts(const ExpressionNode& node, const std::vector<std::size_t>& places, const std::vector<Arg>& args,
                      std::set<std::size_t>& texts) {
  const auto place = [&](const ExpressionNode& each) {
    return each.op == Operator::value && places[each.bits] < args.size() ? places[each.bits] : args.size();
  };
  const auto is_text = [&](const ExpressionNode& each) {
    return each.op == Operator::text || each.op == Operator::text_of ||
           (place(each) < args.size() && args[place(each)].type.kind == TypeKind::text);
  };
  const bool compares = node.op == Operator::equal || node.op == Operator::not_equal || node.op == Operator::matches;
  const bool alone = node.op == Operator::part || (node.op == Operator::text_of && node.of.size() == 1);
  for (const ExpressionNode& each : node.of) {
    const bool beside = compares && is_text(&each == node.of.data() ? node.of[1] : node.of[0]);
    const bool as_text = node.op == Operator::part ? is_text(each) : alone || beside;
    if (as_text && place(each) < args.size()) texts.insert(place(each));
    find_whole_texts(each, places, args, texts);
  }
}

/// Gives texts the lengths that a question has for them. Error: it asks about one without a length, too.
Result<void> give_lengths(const ExpressionNode& root, const std::vector<std::size_t>& places, std::vector<Arg>& args) {
  const std::vector<Arg> before = args;
  take_lengths(root, places, args);
  std::set<std::size_t> whole;
  find_whole_texts(root, places, args, whole);
  for (const std::size_t text : whole)
    if (args[text].length != before[text].length)
      return fail(ErrorKind::invalid_argument,
                  fmt::format("{}: it is asked about by a length, and up to its NUL: a text is read in one way",
                              args[text].name().empty() ? fmt::format("arg{}", text) : args[text].name()));
  return {};
}

}  // namespace

ValueAdder::ValueAdder(const Expression* where, const TableQuestion* table, const PlannedTable* rows)
    : table_question_(table), rows_are_made_(rows != nullptr) {
  if (table != nullptr && rows != nullptr) table_ = *rows;
  if (table != nullptr) {
    question_ = expr::row_of(where, *table);
  } else if (where != nullptr) {
    question_ = *where;
  }
}

ValueAdder::Filter ValueAdder::add(resolve::TypedArgs& list, const TypeGraph* types, Machine machine,
                                   const ValueOptions& options, const TextOptions& texts,
                                   std::span<const resolve::TextAndLength> lengths) {
  if (!options.open && options.paths.empty() && !question_) return {};
  resolve::MemberAdder members(list, types, machine, {.structures = options.depth});
  judge_texts(members, texts);
  add_wanted(list, members, options);
  if (!question_) return {};
  auto typed = ask(list, members, lengths);
  if (typed) {
    asked_ = true;
    return {.number = intern(std::move(*typed))};
  }
  if (!refused_) refused_ = typed.error();
  return {.refusal = typed.error().message};
}

void ValueAdder::judge_texts(const resolve::MemberAdder& members, const TextOptions& texts) {
  const auto judge = [&](const ValuePath& path) {
    const std::string why = members.why_no_text(path);
    if (!why.empty() && !no_text_) no_text_ = Error{ErrorKind::invalid_argument, why};
  };
  for (const std::string& name : texts.names)
    if (const auto path = parse_value_path(name)) judge(*path);
  for (const std::uint8_t number : texts.numbers)
    judge({.text = fmt::format("arg{}", number), .root = number, .steps = {}});
}

void ValueAdder::add_wanted(resolve::TypedArgs& list, resolve::MemberAdder& members, const ValueOptions& options) {
  const std::size_t arguments = list.args.size();
  for (std::size_t n = 0; options.open && n < arguments; ++n) members.open(n, false);
  for (const ValuePath& path : options.paths) {
    Outcome& outcome = outcomes_[&path];
    if (path.steps.empty()) {
      const auto n = find_arg(list.args, path.root);
      if (!n) continue;
      outcome.found = true;
      if (!options.open) members.open(*n, true);
      continue;
    }
    auto added = members.add(path);
    if (added) {
      outcome.found = true;
    } else if (added.error().kind != ErrorKind::not_found) {
      Arg arg{.type = {}, .location = Unreadable{added.error().message}, .source = {}};
      arg.declaration = std::make_shared<const Declaration>(Declaration{path.text, {}, {}});
      arg.derived = true;
      if (list.args.size() < USDT_MAX_ARGS) list.args.push_back(std::move(arg));
      if (!outcome.fault) outcome.fault = std::move(added.error());
    }
  }
}

Result<void> ValueAdder::check_texts(const ExpressionNode& node, const resolve::MemberAdder& members) const {
  for (const ExpressionNode& each : node.of) TRY(check_texts(each, members));
  if (node.op != Operator::text_of || node.of[0].op != Operator::value) return {};
  const std::string why = members.why_no_text(question_->values[node.of[0].bits]);
  return why.empty() ? Result<void>{} : fail(Error{ErrorKind::invalid_argument, why, 0, node.column});
}

/// Checks the question; the values that it adds are read without being shown.
Result<TypedExpression> ValueAdder::ask(resolve::TypedArgs& list, resolve::MemberAdder& members,
                                        std::span<const resolve::TextAndLength> lengths) {
  const std::size_t shown = list.args.size();
  TRY(check_texts(question_->root, members));
  std::vector<std::size_t> places;
  for (const ValuePath& path : question_->values) {
    auto place = find_value(list.args, path);
    if (!place && !path.steps.empty()) {
      TRY(members.add(path));
      place = find_value(list.args, path);
    }
    if (!place && may_be_enumerator(path)) {
      places.push_back(TypedExpression::kNoArgument);
      continue;
    }
    if (!place)
      return fail(ErrorKind::invalid_argument,
                  fmt::format("{}: there is no such argument{}", path.text, expr::near_names(path.text, list.args)));
    if (path.steps.empty()) members.open(*place, false);  // a text that is a struct, such as std::string_view
    places.push_back(*place);
  }
  for (std::size_t n = shown; n < list.args.size(); ++n) list.args[n].hidden = true;
  std::vector<Arg> asked = list.args;
  for (const resolve::TextAndLength& each : lengths) {
    if (each.text < asked.size() && each.length < asked.size() && !asked[each.text].length)
      asked[each.text].length = each.length;
  }
  TRY(give_lengths(question_->root, places, asked));
  auto typed = TypedExpression::check(*question_, asked, places);
  if (!typed) return typed;
  if (typed->args().size() + expr::context_facts(*typed).size() > TypedExpression::kMostValues)
    return fail(ErrorKind::limit, fmt::format("more than {} different values: trace_id is two of them, span_id one",
                                              TypedExpression::kMostValues));
  // Whether programs have room for it does not depend on where they run.
  TRY(expr::compile(*typed, {}));
  if (typed->root().op != Operator::row) return typed;
  TRY(add_row(*typed, list.args));
  return typed;
}

Result<void> ValueAdder::add_row(const TypedExpression& row, const std::vector<Arg>& args) {
  auto table = TRY(expr::planned_kernel_table(row, args, *table_question_));
  if (!table_)
    table_ = std::move(table);
  else if (auto why = expr::why_other_rows(*table_, table); !why.empty())
    return fail(ErrorKind::invalid_argument, std::move(why));
  else if (!rows_are_made_)
    expr::join_signs(*table_, table);
  return {};
}

void ValueAdder::take(AttachPlan& plan) && {
  plan.filters = std::move(filters_);
  plan.table = std::move(table_);
  if (plan.table) take_signs_of(plan, *plan.table);
}

void take_signs_of(AttachPlan& plan, const PlannedTable& table) {
  std::set<Index<TypedExpression>> pairing;
  for (const PlannedSite& site : plan.sites)
    if (site.pair) pairing.insert(*site.pair);
  for (std::uint32_t n = 0; n < plan.filters.size(); ++n)
    if (const Index<TypedExpression> number(n); !pairing.contains(number))
      plan.filters[number] = plan.filters[number].with_signs_of(table);
}

Index<TypedExpression> ValueAdder::intern(TypedExpression filter) {
  for (const Index<TypedExpression> known : filters_.indices()) {
    if (filters_[known] == filter) return known;
  }
  return filters_.add(std::move(filter));
}

std::vector<expr::AskedText> ValueAdder::texts_of_beginning(const Filter& filter, const std::vector<Arg>& args) const {
  return filter.number ? expr::texts_of_beginning(filters_[*filter.number], args) : std::vector<expr::AskedText>();
}

Result<void> ValueAdder::check() const {
  for (const auto& [path, outcome] : outcomes_) {
    if (outcome.found || !outcome.fault) continue;
    return fail(
        Error{ErrorKind::invalid_argument, outcome.fault->message, 0, outcome.fault->column}.within(path->text));
  }
  if (no_text_) return fail(*no_text_);
  if (!asked_ && refused_) {
    Error refusal{ErrorKind::invalid_argument, refused_->message, 0, refused_->column};
    return fail(question_->text.empty() ? refusal : refusal.within(question_->text));  // a row's parts name themselves
  }
  return {};
}

}  // namespace usdt::plan
