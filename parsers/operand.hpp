// SPDX-License-Identifier: BSD-2-Clause
// Private to parsers/: the common part of the dialects. It knows no Spirit type; `refuse_with` and ExpressionParser are
// templates that only the grammars' own .cpp files instantiate with X3.
#pragma once

#ifndef __SIZEOF_INT128__
#include <boost/multiprecision/cpp_int.hpp>
#endif
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parsers/draft.hpp"
#include "usdt/operand.hpp"

namespace usdt::parsers {

/// The first reason why a grammar gave up. An empty reason means "this character was not expected here".
struct Trouble {
  const char* at = nullptr;  ///< nullptr: no trouble
  std::string_view reason;   ///< a literal: lower case, for people

  void refuse(const char* where, std::string_view why) noexcept {
    if (at == nullptr) *this = {where, why};
  }
};

// The working state of each of these grammars derives from Trouble.

/// The semantic action of an error production: `'(' >> (base | x3::eps[refuse_with("expected a register")])`. It fails
/// the parse and keeps the first reason and its place. X3's own expectation `>` throws, and names mangled types.
constexpr auto refuse_with(std::string_view reason) {
  return [reason](auto& ctx) {
    get<DraftTag>(ctx).refuse(&*_where(ctx).begin(), reason);
    _pass(ctx) = false;
  };
}

/// Makes error productions of a grammar: `constexpr Refusals refuse{x3::eps}; '(' >> (base | refuse("expected a
/// register"))`.
template <class Eps>
struct Refusals {
  Eps eps;

  auto operator()(std::string_view reason) const { return eps[refuse_with(reason)]; }
};
template <class Eps>
Refusals(Eps) -> Refusals<Eps>;

/// The semantic action that keeps what a raw[] parser has found in a member of the draft.
template <class Draft>
constexpr auto keep(std::string_view Draft::*member) {
  return [member](auto& ctx) { get<DraftTag>(ctx).*member = matched(ctx); };
}
/// The semantic action that says of which kind the operand is.
template <class Kind>
constexpr auto is(Kind kind) {
  return [kind](auto& ctx) { get<DraftTag>(ctx).kind = kind; };
}

#ifdef __SIZEOF_INT128__
using Wide = __int128;
#else  // 32-bit machines
using Wide = boost::multiprecision::int128_t;
#endif

/// An expression of GNU as: numbers and at most one symbol, folded.
struct Expression {
  Wide number = 0;          ///< exact; the dialect checks the range its operand has
  bool overflow = false;    ///< a part of it was beyond any 64-bit number; `number` is then meaningless
  std::string_view symbol;  ///< as it stands, without quotes; empty: none
  std::string_view reloc;   ///< behind the symbol's '@', between arm64 colons, behind riscv64's '%'
  bool marked = false;      ///< a part of it has the '$' of an immediate
  const char* at = nullptr;
};

/// Signs that may stand before a number.
enum class Marks : std::uint8_t { none, dollar };

/// Parses the longest expression at `first` and moves `first` behind it: `-16+24`, `20+garr`, `mp_@GOTOFF+40`,
/// `(8+4)*2`, with marks `$3+($10-$8)`. False when nothing there is one, or with `trouble` set when it goes wrong
/// half-way.
[[nodiscard]] bool parse_expression(const char*& first, const char* last, Marks marks, Expression& out,
                                    Trouble& trouble) noexcept;

/// parse_expression as a parser of a grammar: ExpressionParser<x3::parser>.
template <template <class> class ParserBase, Marks marks = Marks::none>
struct ExpressionParser : ParserBase<ExpressionParser<ParserBase, marks>> {
  using attribute_type = Expression;
  static constexpr bool has_attribute = true;

  template <class Context, class RuleContext>
  bool parse(const char*& first, const char* last, const Context& ctx, RuleContext&, Expression& out) const {
    return parse_expression(first, last, marks, out, get<DraftTag>(ctx));
  }
};

/// The symbol of `expression`, if it has one.
[[nodiscard]] std::optional<SymbolRef> symbol_of(const Expression& expression);
/// As an immediate, -2^63 .. 2^64-1. False with `trouble` set where it does not fit.
[[nodiscard]] bool to_constant(const Expression& expression, ConstOperand& out, Trouble& trouble);
/// As a displacement, -2^63 .. 2^63-1. False with `trouble` set where it does not fit.
[[nodiscard]] bool to_displacement(const Expression& expression, std::int64_t& out, Trouble& trouble);

/// `name` in lower case: assemblers take names in either case.
[[nodiscard]] std::string lower_case(std::string_view name);

using Operand = decltype(ParsedArg::operand);
/// Parses one operand, the whole of `text`. False with `trouble` set where it cannot be read.
using OperandParser = bool (*)(std::string_view text, Operand& out, Trouble& trouble);

/// Whether a comma outside brackets may stand inside an argument: arm64's `[sp], 16`.
enum class OuterComma : std::uint8_t { no, yes };

/// Cuts `text` into arguments and parses each alone.
[[nodiscard]] std::vector<ParsedArg> parse_each(std::string_view text, OuterComma outer_comma, OperandParser parse);

}  // namespace usdt::parsers
