// SPDX-License-Identifier: BSD-2-Clause
// Adds values that are read at a point beside its arguments, and the questions asked there. Private to plan/.
#pragma once

#include <map>
#include <optional>
#include <span>

#include "expr/asked_texts.hpp"
#include "resolve/describe.hpp"
#include "resolve/members.hpp"
#include "usdt/plan.hpp"

namespace usdt::plan {

/// Returns the values that are wanted beside the arguments at the point that `name` names.
template <class Name>
[[nodiscard]] const ValueOptions& value_options(const PlanOptions& options, const Name& name) {
  const ValueOptions* own = options.values_of ? options.values_of(name()) : nullptr;
  return own ? *own : options.values;
}

/// Adds to the lists of arguments what is wanted beside them, and remembers which paths led somewhere.
class ValueAdder {
 public:
  /// PlanOptions::where, PlanOptions::table and PlanOptions::rows, which live as long; null: every hit counts, and is
  /// an event, and the first point says what rows are.
  ValueAdder(const Expression* where, const TableQuestion* table, const PlannedTable* rows);

  /// Says what is asked about hits at the points of one list of arguments.
  struct Filter {
    std::optional<Index<TypedExpression>> number = {};  ///< in filters()
    std::string refusal = {};                           ///< empty: it can be asked there
  };

  /// Adds the values and the question of a point to its list. A path with a fault at this point becomes an unreadable
  /// argument of its name, with the reason.
  /// `lengths`: texts among the arguments themselves that come with one.
  Filter add(resolve::TypedArgs& list, const TypeGraph* types, Machine machine, const ValueOptions& options,
             const TextOptions& texts, std::span<const resolve::TextAndLength> lengths = {});
  /// Texts that a filter is about and calls have at their beginning.
  [[nodiscard]] std::vector<expr::AskedText> texts_of_beginning(const Filter& filter,
                                                                const std::vector<Arg>& args) const;
  /// Paths that led nowhere at any point where their argument is: the first fault of one. Errors: invalid_argument.
  [[nodiscard]] Result<void> check() const;
  /// Moves to the plan what is asked, typed for each kind of point, and the table that all of them make rows of.
  void take(AttachPlan& plan) &&;

 private:
  struct Outcome {
    bool found = false;
    std::optional<Error> fault = {};
  };
  void judge_texts(const resolve::MemberAdder& members, const TextOptions& texts);
  void add_wanted(resolve::TypedArgs& list, resolve::MemberAdder& members, const ValueOptions& options);
  [[nodiscard]] Result<void> check_texts(const ExpressionNode& node, const resolve::MemberAdder& members) const;
  [[nodiscard]] Result<TypedExpression> ask(resolve::TypedArgs& list, resolve::MemberAdder& members,
                                            std::span<const resolve::TextAndLength> lengths);
  [[nodiscard]] Index<TypedExpression> intern(TypedExpression filter);

  /// Adds a point's row to the table: its keys and value have to be those of all other points.
  [[nodiscard]] Result<void> add_row(const TypedExpression& row, const std::vector<Arg>& args);

  std::optional<Expression> question_;
  const TableQuestion* table_question_;
  bool rows_are_made_;  ///< already, with columns as they are
  std::optional<PlannedTable> table_ = {};
  std::map<const ValuePath*, Outcome> outcomes_;
  std::optional<Error> no_text_ = {};  ///< why what is wanted as text is none, at the first of such points
  Table<TypedExpression> filters_;
  std::optional<Error> refused_ = {};  ///< why it cannot be asked, at the first of such points
  bool asked_ = false;
};

/// Numbers of the rows that the plan's sites fill become signed or unsigned as the table has them. What pairs the ends
/// of spans is no row of it.
void take_signs_of(AttachPlan& plan, const PlannedTable& table);

}  // namespace usdt::plan
