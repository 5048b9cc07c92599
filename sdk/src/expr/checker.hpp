// SPDX-License-Identifier: BSD-2-Clause
// Types of expressions over the arguments of one site: the class whose subjects are in check*.cpp. Private to expr/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "usdt/arg.hpp"
#include "usdt/expression.hpp"
#include "usdt/result.hpp"

namespace usdt::expr {

inline bool is_only_a_key(HitField field) { return info_of(field).type == ExpressionType::stack; }

inline TypedExpression::Node truth(bool value) { return {.op = Operator::integer, .bits = value ? 1U : 0U}; }

inline tl::unexpected<Error> wrong(const ExpressionNode& at, std::string reason) {
  return fail(Error{ErrorKind::invalid_argument, std::move(reason), 0, at.column});
}

/// Goes through the tree of an expression once, and makes a typed one of it.
class Checker {
 public:
  using Node = TypedExpression::Node;
  using Type = ExpressionType;
  using Op = Operator;

  Checker(const Expression& expression, const std::vector<Arg>& args, const std::vector<std::size_t>& places)
      : expression_(expression), args_(args), places_(places) {}

  /// Positions of what was read, each once.
  std::vector<std::uint8_t> used;
  std::vector<TypedExpression::OfList> of_lists;

  Result<Node> check(const ExpressionNode& node);

  /// `node` where a truth value is wanted: any integer.
  Result<Node> condition(const ExpressionNode& node);

 private:
  [[nodiscard]] std::string name_of(const ExpressionNode& node) const {
    return node.op == Op::value ? expression_.values[node.bits].text : "it";
  }

  // --- texts: check_texts.cpp ---
  Result<Node> text_literal(const ExpressionNode& node);
  /// Whether argument `node` may be a pointer to a text.
  [[nodiscard]] bool points(const ExpressionNode& node) const;
  Result<Node> text_of(const ExpressionNode& node);
  /// "str(p, n)": the text has that length for its own, by who put the list of arguments together.
  [[nodiscard]] Result<void> check_length(const ExpressionNode& pointer, const ExpressionNode& length) const;
  /// The text that a pointer, value `bits`, points to; below it its length, where that is known: a value, or of an
  /// array of characters a literal, how many there is room for before a NUL.
  Result<Node> text_at(const ExpressionNode& pointer, std::uint64_t bits);
  /// A pointer is taken for the text it points to where it is compared with one.
  Result<Node> text_compared(const ExpressionNode& at, Node subject);
  Result<Node> text_and_literal(Op op, const ExpressionNode& at, Node left, const ExpressionNode& with,
                                const Node& literal);
  static Result<Node> two_literals(Op op, const ExpressionNode& at, const Node& left, const ExpressionNode& with,
                                   const Node& right);
  Result<Node> two_texts(Op op, const ExpressionNode& a, Node left, const ExpressionNode& b, Node right);

  // --- arguments, values of enums, words: check_values.cpp ---
  /// An argument that has an enum's type, of which `node` is or makes a combination of bits; null: it is none.
  [[nodiscard]] const Arg* enum_in(const ExpressionNode& node) const;
  Result<Node> enumerator(const std::string& name, const ExpressionNode& node);
  /// A name that no argument has: a value of an enum, where one is meant, or a word.
  Result<Node> unbound(const ExpressionNode& node);
  Result<Node> value(const ExpressionNode& node);
  Result<Node> argument(std::size_t position, const std::string& name, const ExpressionNode& node);
  /// The number of argument `position` among the values that are read, with what it takes to know an element of a list.
  Result<std::uint8_t> use(std::size_t position, const std::string& name, const ExpressionNode& node);
  /// Returns what a word stands for.
  [[nodiscard]] Result<Node> word(std::string_view name, const ExpressionNode& node) const;
  static Result<Node> field(const ExpressionNode& node);

  // --- rows of tables: check_rows.cpp ---
  /// A signed number, whatever it is a bucket of.
  Result<Node> bucket(const ExpressionNode& node);
  Result<Node> linear_bucket(const ExpressionNode& node);
  /// Makes the bucket of a real, with its bounds as reals of that type.
  static Result<Node> linear_bucket_of_real(const ExpressionNode& node, Node of);
  /// Errors name the part, since their columns are those of its text.
  Result<Node> row(const ExpressionNode& node);
  /// A number, or a real of the hit.
  Result<Node> number_or_real(const ExpressionNode& node);
  /// A pointer to characters is the text.
  Result<Node> key(const ExpressionNode& node);
  /// A number that is shown in its own way.
  Result<Node> shown(const ExpressionNode& node);

  // --- operators: check.cpp ---
  Result<Node> both(const ExpressionNode& node);
  Result<Node> unary(const ExpressionNode& node);
  Result<Node> number(const ExpressionNode& node);
  Result<Node> arithmetic(const ExpressionNode& node);
  Result<Node> computed(const ExpressionNode& node);
  /// Replaces an operation on constants by its value.
  static Result<Node> folded(const ExpressionNode& node, Node made);
  Result<Node> conditional(const ExpressionNode& node);
  /// Gives a node another type, and keeps its bits.
  static Node with_type(Type type, Node node);

  // --- comparisons: check_comparisons.cpp ---
  /// Makes of "x in {a, b}" the chain "x == a || x == b".
  Result<Node> in(const ExpressionNode& node);
  Result<Node> compared(Op op, const ExpressionNode& a, const ExpressionNode& b, const ExpressionNode& at);
  Result<Node> reals(Op op, Node left, Node right, const ExpressionNode& at);
  static Node pair(Op op, Node left, Node right, Type type = Type::signed_integer);
  /// Holds the values of another type next to a literal, by which it is compared with a value of that type. A literal
  /// beyond all of them has none there. Comparisons are of the numbers, whatever a literal would be rounded to.
  struct Neighbours {
    std::optional<Node> below, above;
    bool exact = false;  ///< both are the literal
  };
  static Neighbours reals_around(Type type, const Node& literal);
  static Neighbours integers_around(const Node& literal);
  static Node with_literal(Op op, const Node& left, const Neighbours& around);

  [[nodiscard]] bool is_argument(const ExpressionNode& node) const {
    return node.op == Op::value && places_[node.bits] != TypedExpression::kNoArgument;
  }

  /// While it lives, names in two operands may be values of the enum that one of them is of; in combinations of bits
  /// also of the one that the whole is compared with.
  class NamesOfEnum {
   public:
    NamesOfEnum(Checker& checker, const ExpressionNode& a, const ExpressionNode& b, bool compared)
        : checker_(checker), before_(checker.enum_) {
      const Arg* found = checker.enum_in(a);
      if (found == nullptr) found = checker.enum_in(b);
      if (found != nullptr || compared) checker.enum_ = found;
    }
    NamesOfEnum(const NamesOfEnum&) = delete;
    NamesOfEnum& operator=(const NamesOfEnum&) = delete;
    ~NamesOfEnum() { checker_.enum_ = before_; }

   private:
    Checker& checker_;
    const Arg* before_;
  };

  static std::string_view name_of(const Arg& arg) { return arg.result && arg.name().empty() ? "retval" : arg.name(); }

  /// Whether argument `node` is a pointer to characters by its type.
  [[nodiscard]] bool is_declared_text(const ExpressionNode& node) const {
    return is_argument(node) && args_[places_[node.bits]].type.kind == TypeKind::text;
  }

  Result<Node> comparison(const ExpressionNode& node) { return compared(node.op, node.of[0], node.of[1], node); }

  const Arg* enum_ = nullptr;  ///< whose values names may mean
  const Expression& expression_;
  const std::vector<Arg>& args_;
  const std::vector<std::size_t>& places_;
};

}  // namespace usdt::expr
