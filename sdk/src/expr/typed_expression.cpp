// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <utility>

#include "base/try.hpp"
#include "expr/kept_texts.hpp"
#include "expr/row.hpp"
#include "expr/row_checker.hpp"
#include "expr/site_words.hpp"
#include "usdt/expression.hpp"

namespace usdt {
inline namespace v1 {
namespace {

bool asks_for(const TypedExpression::Node& node, HitField field) {
  if (node.op == Operator::field && node.bits == static_cast<std::uint64_t>(field)) return true;
  return std::ranges::any_of(node.of, [field](const TypedExpression::Node& each) { return asks_for(each, field); });
}

}  // namespace

Result<TypedExpression> TypedExpression::check(const Expression& expression, const std::vector<Arg>& args,
                                               const std::vector<std::size_t>& places) {
  expr::Checker checker(expression, args, places);
  const ExpressionNode& root = expression.root;
  TypedExpression made;
  made.root_ = TRY(root.op == Operator::row ? expr::RowChecker(checker).row(root) : checker.condition(root));
  made.args_ = checker.used().positions();
  made.of_lists_ = checker.used().of_lists();
  return made;
}

bool TypedExpression::asks(HitField field) const { return asks_for(root_, field); }

TypedExpression TypedExpression::at_site(const SiteWords& site) const {
  TypedExpression made = *this;
  expr::SiteFolder(site).fold(made.root_);
  return made;
}

bool TypedExpression::depends_on_site() const {
  TypedExpression other = *this;
  return expr::SiteFolder({}).fold(other.root_);
}

TypedExpression TypedExpression::with_signs_of(const PlannedTable& table) const {
  TypedExpression made = *this;
  expr::take_signs(made.root_, table);
  return made;
}

Result<TypedExpression> TypedExpression::with_kept_texts(const std::vector<std::optional<std::uint8_t>>& slots) const {
  TypedExpression made = *this;
  auto kept = TRY(expr::keep_texts(made.root_, made.args_, made.of_lists_, slots));
  std::ranges::move(kept, std::back_inserter(made.kept_texts_));
  return made;
}

}  // namespace v1
}  // namespace usdt
