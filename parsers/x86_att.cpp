// SPDX-License-Identifier: BSD-2-Clause
// AT&T operands of x86-64 and i386, as GNU as reads them: %reg, $constant, SEGMENT:DISP(BASE,INDEX,SCALE).
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
  std::string_view segment;
  std::string_view base;
  std::string_view index;
  std::uint32_t scale = 1;
  Expression expression;
};

constexpr Refusals refuse{x3::eps};

// Semantic actions.

const auto keep_expression = [](auto& ctx) { x3::get<DraftTag>(ctx).expression = x3::_attr(ctx); };

const auto keep_scale = [](auto& ctx) {
  Draft& draft = x3::get<DraftTag>(ctx);
  const std::string_view digits = matched(ctx);
  const bool known = digits == "1" || digits == "2" || digits == "4" || digits == "8";
  if (known) draft.scale = static_cast<std::uint32_t>(digits[0] - '0');
  if (!known) draft.refuse(digits.data(), "scale must be 1, 2, 4 or 8");
  if (draft.scale != 1 && draft.index.empty()) draft.refuse(digits.data(), "scale without an index register");
  x3::_pass(ctx) = draft.at == nullptr;
};

/// The name before a ':'. The other segments start at 0 on Linux and no compiler writes them.
const auto keep_segment = [](auto& ctx) {
  Draft& draft = x3::get<DraftTag>(ctx);
  draft.kind = Kind::memory;
  draft.segment = draft.reg;
  if (draft.reg != "fs" && draft.reg != "gs") draft.refuse(draft.reg.data(), "only %fs and %gs may stand before ':'");
  x3::_pass(ctx) = draft.at == nullptr;
};

const auto require_register = [](auto& ctx) {
  Draft& draft = x3::get<DraftTag>(ctx);
  if (draft.base.empty() && draft.index.empty()) draft.refuse(&*x3::_where(ctx).begin(), "expected a register");
  x3::_pass(ctx) = draft.at == nullptr;
};

const auto require_mark = [](auto& ctx) { x3::_pass(ctx) = x3::get<DraftTag>(ctx).expression.marked; };
const auto refuse_mark = [](auto& ctx) {
  Draft& draft = x3::get<DraftTag>(ctx);
  if (draft.expression.marked) draft.refuse(draft.expression.at, "a constant has no segment");
  x3::_pass(ctx) = draft.at == nullptr;
};

// Grammar.

const auto blank = x3::omit[*x3::char_(kSpaces)];
const auto digit = x3::char_(kDigits);
const auto name = +x3::char_("a-zA-Z0-9");
const auto unnamed = refuse("expected a register name after '%'");
const ExpressionParser<x3::parser, Marks::dollar> expression;

const auto base = '%' >> (x3::raw[name][keep(&Draft::base)] | unnamed) >> blank;
const auto index = '%' >> (x3::raw[name][keep(&Draft::index)] | unnamed) >> blank;
const auto scale = (x3::raw[+digit][keep_scale] | refuse("expected a scale of 1, 2, 4 or 8")) >> blank;
// As in GNU as, "(%rax,1)" is "(%rax)" and "(%rax,%rcx,)" is "(%rax,%rcx)".
const auto scaled_index =
    (index >> -(',' >> blank >> (&x3::lit(')') | scale))) | (&digit >> scale) | refuse("expected an index register");
const auto address = '(' >> blank >> -base >> -(',' >> blank >> scaled_index) >>
                     (&x3::lit(')') | refuse("missing ')'")) >> x3::eps[require_register] >> ')';
const auto memory = (!x3::lit('$') >> expression[keep_expression] >> x3::eps[refuse_mark] >> -address) | address;
const auto constant_or_memory =
    (expression[keep_expression] >> ((x3::eps[require_mark] >> x3::eps[is(Kind::constant)]) | -address)) | address;
// "%st(1)" is a register's whole name; "%fs:" begins a memory operand.
const auto reg = '%' >>
                 (x3::raw[name >> -('(' >> digit >> ')')][keep(&Draft::reg)] | unnamed) >> x3::eps[is(Kind::reg)] >>
                 -(x3::lit(':')[keep_segment] >> (memory | refuse("expected a memory operand after ':'")));
const x3::rule<struct OperandRule> operand = "operand";
const auto operand_def = (reg | constant_or_memory | refuse({})) >> (x3::eoi | refuse({}));

BOOST_SPIRIT_DEFINE(operand)

bool finish_memory(const Draft& draft, MemOperand& memory_operand, Trouble& trouble) {
  if (!to_displacement(draft.expression, memory_operand.disp, trouble)) return false;
  memory_operand.symbol = symbol_of(draft.expression);
  memory_operand.base = draft.base;
  memory_operand.index = draft.index;
  memory_operand.scale = draft.scale;
  memory_operand.segment = draft.segment;
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

std::vector<ParsedArg> parse_x86_att(std::string_view text) { return parse_each(text, OuterComma::no, parse_operand); }

}  // namespace usdt::parsers
