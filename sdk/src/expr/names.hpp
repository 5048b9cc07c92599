// SPDX-License-Identifier: BSD-2-Clause
// Names in an expression, and their meaning at a site: arguments, values of their enums, words. Private to expr/.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "expr/used_values.hpp"
#include "usdt/arg.hpp"
#include "usdt/expression.hpp"
#include "usdt/result.hpp"

namespace usdt::expr {

/// Finds what the names in an expression mean.
class Names {
 public:
  using Node = TypedExpression::Node;

  /// As TypedExpression::check(); what is read becomes one of `used`. All live as long.
  Names(const Expression& expression, const std::vector<Arg>& args, const std::vector<std::size_t>& places,
        UsedValues& used)
      : expression_(expression), args_(args), places_(places), used_(used) {}

  /// Whether `node` is a path to a value of the site.
  [[nodiscard]] bool is_argument(const ExpressionNode& node) const {
    return node.op == Operator::value && places_[node.bits] != TypedExpression::kNoArgument;
  }
  /// The position of the value that `node`, an argument, leads to.
  [[nodiscard]] std::size_t position_of(const ExpressionNode& node) const { return places_[node.bits]; }
  [[nodiscard]] const Arg& arg_of(const ExpressionNode& node) const { return args_[position_of(node)]; }
  [[nodiscard]] const Arg& arg_at(std::size_t position) const { return args_[position]; }
  /// Whether `node` is an argument that is a pointer to characters by its type.
  [[nodiscard]] bool is_declared_text(const ExpressionNode& node) const {
    return is_argument(node) && arg_of(node).type.kind == TypeKind::text;
  }
  /// Whether `node` is an argument that may be a pointer to a text.
  [[nodiscard]] bool points(const ExpressionNode& node) const;
  /// The name of `node` in messages.
  [[nodiscard]] std::string name_of(const ExpressionNode& node) const {
    return node.op == Operator::value ? expression_.values[node.bits].text : "it";
  }

  /// The argument, value of an enum or word that `node`, a path, means.
  [[nodiscard]] Result<Node> value(const ExpressionNode& node);
  /// The argument at `position`, which errors at `node` call `name`.
  [[nodiscard]] Result<Node> argument(std::size_t position, const std::string& name, const ExpressionNode& node);

  /// While it lives, names in two operands may be values of the enum that one of them is of; in combinations of bits
  /// also of the one that the whole is compared with.
  class OfEnum {
   public:
    OfEnum(Names& names, const ExpressionNode& a, const ExpressionNode& b, bool compared)
        : names_(names), before_(names.enum_) {
      const Arg* found = names.enum_in(a);
      if (found == nullptr) found = names.enum_in(b);
      if (found != nullptr || compared) names.enum_ = found;
    }
    OfEnum(const OfEnum&) = delete;
    OfEnum& operator=(const OfEnum&) = delete;
    ~OfEnum() { names_.enum_ = before_; }

   private:
    Names& names_;
    const Arg* before_;
  };

 private:
  /// An argument that has an enum's type, of which `node` is or makes a combination of bits; null: it is none.
  [[nodiscard]] const Arg* enum_in(const ExpressionNode& node) const;
  [[nodiscard]] Result<Node> enumerator(const std::string& name, const ExpressionNode& node) const;
  /// A name that no argument has: a value of an enum, where one is meant, or a word.
  [[nodiscard]] Result<Node> unbound(const ExpressionNode& node) const;
  /// Returns what a word stands for.
  [[nodiscard]] Result<Node> word(std::string_view name, const ExpressionNode& node) const;

  const Expression& expression_;
  const std::vector<Arg>& args_;
  const std::vector<std::size_t>& places_;
  UsedValues& used_;
  const Arg* enum_ = nullptr;  ///< whose values names may mean
};

}  // namespace usdt::expr
