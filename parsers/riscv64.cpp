// SPDX-License-Identifier: BSD-2-Clause
// riscv64 operands as GCC and Clang print them: a register by its name in the ABI, a number, and what loads and stores
// address, `-20(s0)` and `%lo(sym)(a5)` (RISC-V Assembly Programmer's Manual).
#include <boost/spirit/home/x3.hpp>

#include "parsers/args.hpp"
#include "parsers/characters.hpp"
#include "parsers/operand.hpp"

namespace usdt::parsers {
namespace {

namespace x3 = boost::spirit::x3;

enum class Kind : std::uint8_t { constant, reg, memory };

/// The operand as views of the text, before it is known to be good.
struct Draft : Trouble {
  Kind kind = Kind::constant;
  std::string_view reg;  ///< itself, or the base of an address
  std::string_view reloc;
  Expression expression;
};

auto refuse(std::string_view reason) { return x3::eps[refuse_with(reason)]; }

// Semantic actions.

const auto keep_reg = [](auto& ctx) { x3::get<DraftTag>(ctx).reg = matched(ctx); };
const auto keep_reloc = [](auto& ctx) { x3::get<DraftTag>(ctx).reloc = matched(ctx); };
const auto keep_expression = [](auto& ctx) { x3::get<DraftTag>(ctx).expression = x3::_attr(ctx); };
constexpr auto is(Kind kind) {
  return [kind](auto& ctx) { x3::get<DraftTag>(ctx).kind = kind; };
}

/// Instructions have room for a part of an address, which the operator before a symbol names.
const auto refuse_symbol = [](auto& ctx) {
  Draft& draft = x3::get<DraftTag>(ctx);
  if (!draft.expression.symbol.empty())
    draft.refuse(draft.expression.at, "a symbol here needs an operator such as %lo()");
  x3::_pass(ctx) = draft.at == nullptr;
};

// Grammar.

const auto blank = x3::omit[*x3::char_(kSpaces)];
const auto name = x3::char_("a-zA-Z") >> *x3::char_("a-zA-Z0-9");
// A name that goes on like a symbol or an expression is no register's.
const auto plain_name = name >> !x3::char_("_.$@+*(-");
const ExpressionParser<x3::parser> expression;

const auto base = '(' >> blank >> (x3::raw[name][keep_reg] | refuse("expected a base register")) >> blank >>
                  (')' | refuse("missing ')'")) >> x3::eps[is(Kind::memory)];
// "%lo(sym+8)"; what operator it is, is the planner's to know.
const auto relocated = '%' >> (x3::raw[+x3::char_("a-zA-Z0-9_")][keep_reloc] | refuse("expected an operator's name")) >>
                       ('(' | refuse("missing '(' behind the operator")) >>
                       (expression[keep_expression] | refuse("expected a symbol")) >> (')' | refuse("missing ')'"));
const auto number = expression[keep_expression] >> x3::eps[refuse_symbol];
const auto reg = x3::raw[plain_name][keep_reg] >> x3::eps[is(Kind::reg)];
const auto memory = (relocated >> (base | refuse("expected a base register"))) | (number >> -base);
const x3::rule<struct OperandRule> operand = "operand";
const auto operand_def = ((base >> x3::eoi) | reg | memory | refuse({})) >> (x3::eoi | refuse({}));

BOOST_SPIRIT_DEFINE(operand)

bool parse_operand(std::string_view text, Operand& out, Trouble& trouble) {
  Draft draft;
  const char* first = text.data();
  const bool parsed = x3::parse(first, text.data() + text.size(), x3::with<DraftTag>(draft)[operand]);
  if (!parsed || draft.at != nullptr) {
    trouble = draft;
    return false;
  }
  draft.expression.reloc = draft.reloc;
  switch (draft.kind) {
    case Kind::reg:
      out = RegOperand{draft.reg};
      return true;
    case Kind::constant:
      return to_constant(draft.expression, out.emplace<ConstOperand>(), trouble);
    case Kind::memory:
      break;
  }
  MemOperand& memory_operand = out.emplace<MemOperand>();
  memory_operand.base = draft.reg;
  memory_operand.symbol = symbol_of(draft.expression);
  return to_displacement(draft.expression, memory_operand.disp, trouble);
}

}  // namespace

std::vector<ParsedArg> parse_riscv64(std::string_view text) { return parse_each(text, OuterComma::no, parse_operand); }

}  // namespace usdt::parsers
