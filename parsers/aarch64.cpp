// SPDX-License-Identifier: BSD-2-Clause
// arm64 operands as GCC and clang print them: a register, an immediate with or without '#', and the address modes of
// the load and store instructions (Arm ARM, "Load/Store addressing modes").
#include <boost/spirit/home/x3.hpp>

#include "parsers/args.hpp"
#include "parsers/characters.hpp"
#include "parsers/operand.hpp"

namespace usdt::parsers {
namespace {

namespace x3 = boost::spirit::x3;

enum class Kind : std::uint8_t { reg, constant, memory };

/// The operand as views of the text, before it is known to be good.
struct Draft : Trouble {
  Kind kind = Kind::memory;
  std::string_view reg;
  std::string_view base;
  std::string_view index;
  std::string_view reloc;
  Extend extend = Extend::none;
  std::uint8_t amount = 0;
  Writeback writeback = Writeback::none;
  Expression expression;
};

constexpr Refusals refuse{x3::eps};

// Semantic actions.

constexpr auto writes_back(Writeback writeback) {
  return [writeback](auto& ctx) { x3::get<DraftTag>(ctx).writeback = writeback; };
}
const auto keep_expression = [](auto& ctx) { x3::get<DraftTag>(ctx).expression = x3::_attr(ctx); };

/// A number, or a symbol that may not stand here.
constexpr auto keep_number(std::string_view reason) {
  return [reason](auto& ctx) {
    Draft& draft = x3::get<DraftTag>(ctx);
    draft.expression = x3::_attr(ctx);
    if (!draft.expression.symbol.empty()) draft.refuse(draft.expression.at, reason);
    x3::_pass(ctx) = draft.at == nullptr;
  };
}

const auto keep_extend = [](auto& ctx) {
  Draft& draft = x3::get<DraftTag>(ctx);
  const std::string word = lower_case(matched(ctx));
  draft.extend = word == "lsl"    ? Extend::lsl
                 : word == "uxtw" ? Extend::uxtw
                 : word == "sxtw" ? Extend::sxtw
                 : word == "uxtx" ? Extend::uxtx
                 : word == "sxtx" ? Extend::sxtx
                                  : Extend::none;
  if (draft.extend == Extend::none) draft.refuse(matched(ctx).data(), "expected lsl, uxtw, sxtw, uxtx or sxtx");
  x3::_pass(ctx) = draft.at == nullptr;
};

/// No load or store shifts its index further than the 16 bytes of a vector register.
const auto keep_amount = [](auto& ctx) {
  Draft& draft = x3::get<DraftTag>(ctx);
  const std::string_view digits = matched(ctx);
  if (digits.size() == 1 && digits[0] <= '4') {
    draft.amount = static_cast<std::uint8_t>(digits[0] - '0');
  } else {
    draft.refuse(digits.data(), "shift amount must be 0 to 4");
  }
  x3::_pass(ctx) = draft.at == nullptr;
};

/// Refuses lsl without an amount; the other extends may stand alone.
const auto default_amount = [](auto& ctx) {
  Draft& draft = x3::get<DraftTag>(ctx);
  if (draft.extend == Extend::lsl) draft.refuse(&*x3::_where(ctx).begin(), "expected a shift amount after lsl");
  x3::_pass(ctx) = draft.at == nullptr;
};

// Grammar.

const auto blank = x3::omit[*x3::char_(kSpaces)];
const auto digit = x3::char_(kDigits);
const auto name = x3::char_("a-zA-Z") >> *x3::char_("a-zA-Z0-9");
// A name that goes on like a symbol or an expression is no register's.
const auto plain_name = name >> !x3::char_("_.$@+*-");
const auto comma = blank >> ',' >> blank;
const ExpressionParser<x3::parser> expression;

// ":lo12:sym+8"; what relocation it is, is the planner's to know.
const auto relocated = ':' >> (x3::raw[+x3::char_("a-zA-Z0-9_")][keep(&Draft::reloc)] |
                               refuse("expected a relocation name")) >>
                       (':' | refuse("missing ':' behind the relocation name")) >>
                       (expression[keep_expression] | refuse("expected a symbol"));
const auto offset = -x3::lit('#') >>
                    (relocated | expression[keep_number("a symbol here needs a relocation such as :lo12:")] |
                     refuse("expected a register or a number"));

const auto extend = x3::raw[+x3::char_("a-zA-Z")][keep_extend] >> blank >>
                    ((-x3::lit('#') >> x3::raw[+digit][keep_amount]) | x3::eps[default_amount]);
const auto index = x3::raw[plain_name][keep(&Draft::index)] >>
                   -(comma >> (extend | refuse("expected lsl, uxtw, sxtw, uxtx or sxtx")));
const auto close = blank >> (']' | refuse("missing ']'"));
const auto pre = x3::lit('!')[writes_back(Writeback::pre)];
const auto post_amount =
    x3::omit[name] | (-x3::lit('#') >> expression[keep_number("expected a number")]) | refuse("expected a number");
const auto post = comma >> x3::eps[writes_back(Writeback::post)] >> post_amount;
const auto memory = '[' >> blank >> (x3::raw[name][keep(&Draft::base)] | refuse("expected a base register")) >>
                    ((comma >> ((index >> close) | (offset >> close >> -pre))) | (close >> -(pre | post)));

const auto immediate =
    (('#' >> (relocated | expression[keep_expression] | refuse("expected a number or a symbol after '#'"))) |
     relocated | expression[keep_number("a symbol without '#' or brackets may be a value or its address")]) >>
    x3::eps[is(Kind::constant)];
const auto lane = x3::char_("vV") >> +digit >> &x3::lit('.') >> refuse("a vector register's lanes are not one value");
const auto reg = x3::raw[plain_name][keep(&Draft::reg)] >> x3::eps[is(Kind::reg)];
const x3::rule<struct OperandRule> operand = "operand";
const auto operand_def = (memory | reg | lane | immediate | refuse({})) >> (x3::eoi | refuse({}));

BOOST_SPIRIT_DEFINE(operand)

bool finish_memory(const Draft& draft, MemOperand& memory_operand, Trouble& trouble) {
  // A post-index amount changes the base after the access; it is no part of the address.
  if (draft.writeback != Writeback::post && !to_displacement(draft.expression, memory_operand.disp, trouble))
    return false;
  memory_operand.symbol = symbol_of(draft.expression);
  memory_operand.base = draft.base;
  memory_operand.index = draft.index;
  memory_operand.scale = 1U << draft.amount;
  memory_operand.extend = draft.extend;
  memory_operand.amount = draft.amount;
  memory_operand.writeback = draft.writeback;
  return true;
}

bool parse_operand(std::string_view text, Operand& out, Trouble& trouble) {
  Draft draft;
  const char* first = text.data();
  const bool parsed = x3::parse(first, text.data() + text.size(), x3::with<DraftTag>(draft)[operand]);
  if (!parsed || draft.at != nullptr) {
    trouble = draft;
    return false;
  }
  if (!draft.reloc.empty()) draft.expression.reloc = draft.reloc;
  switch (draft.kind) {
    case Kind::reg:
      out = RegOperand{draft.reg};
      return true;
    case Kind::constant:
      return to_constant(draft.expression, out.emplace<ConstOperand>(), trouble);
    case Kind::memory:
      break;
  }
  return finish_memory(draft, out.emplace<MemOperand>(), trouble);
}

}  // namespace

std::vector<ParsedArg> parse_aarch64(std::string_view text) { return parse_each(text, OuterComma::yes, parse_operand); }

}  // namespace usdt::parsers
