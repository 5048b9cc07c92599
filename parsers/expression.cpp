// SPDX-License-Identifier: BSD-2-Clause
// The expressions of GNU as, as far as an argument may use them (as manual, "Expressions"); both dialects share them.
#include <boost/spirit/home/x3.hpp>
#include <charconv>
#include <limits>

#include "parsers/characters.hpp"
#include "parsers/operand.hpp"

namespace usdt::parsers {
namespace {

namespace x3 = boost::spirit::x3;

/// Real operands nest once; the bound keeps hostile ones off the stack.
constexpr int kMaxDepth = 32;

struct Draft : Trouble {
  int depth = 0;
  Marks marks = Marks::none;
};

constexpr Refusals refuse{x3::eps};

/// Fails the parse of `ctx` with a reason about the text at `at`.
template <class Context>
void give_up(Context& ctx, const char* at, std::string_view reason) {
  x3::get<DraftTag>(ctx).refuse(at, reason);
  x3::_pass(ctx) = false;
}

/// Within the range of some 64-bit number, signed or not. Sums of such products never leave 128 bits.
bool fits_a_word(const Wide& number) {
  return number >= std::numeric_limits<std::int64_t>::min() && number <= std::numeric_limits<std::uint64_t>::max();
}

// Semantic actions.

/// 12, 0x1f, and 017: as GNU as has it, a leading zero makes a number octal.
const auto set_number = [](auto& ctx) {
  const std::string_view text = matched(ctx);
  const bool zero = text.size() > 1 && text[0] == '0';
  const bool hex = zero && (text[1] == 'x' || text[1] == 'X');
  const std::string_view digits = text.substr(hex ? 2 : 0);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value,
                                            hex    ? 16
                                            : zero ? 8
                                                   : 10);
  if (end != digits.data() + digits.size()) return give_up(ctx, end, "not a digit of an octal number");
  Expression& self = x3::_val(ctx);
  self.at = text.data();
  self.number = value;
  self.overflow = error == std::errc::result_out_of_range;
};

const auto set_symbol = [](auto& ctx) {
  const std::string_view name = matched(ctx);
  if (name == ".") return give_up(ctx, name.data(), "the assembler's position '.' is not known");
  if (name.empty()) return give_up(ctx, name.data(), "empty symbol name");
  x3::_val(ctx).at = name.data();
  x3::_val(ctx).symbol = name;
};

const auto set_reloc = [](auto& ctx) { x3::_val(ctx).reloc = matched(ctx); };

const auto assign = [](auto& ctx) { x3::_val(ctx) = x3::_attr(ctx); };

const auto negate = [](auto& ctx) {
  x3::_val(ctx) = x3::_attr(ctx);
  x3::_val(ctx).number = -x3::_val(ctx).number;
  if (!x3::_attr(ctx).symbol.empty()) give_up(ctx, x3::_attr(ctx).at, "a symbol cannot be subtracted");
};

const auto multiply = [](auto& ctx) {
  Expression& self = x3::_val(ctx);
  const Expression& factor = x3::_attr(ctx);
  if (!self.symbol.empty()) return give_up(ctx, self.at, "a symbol cannot be multiplied");
  if (!factor.symbol.empty()) return give_up(ctx, factor.at, "a symbol cannot be multiplied");
  const auto bounded = [bound = Wide(std::numeric_limits<std::int64_t>::max())](const Wide& number) {
    return number <= bound && number >= -bound;
  };
  self.overflow = self.overflow || factor.overflow || !bounded(self.number) || !bounded(factor.number);
  self.marked = self.marked || factor.marked;
  if (!self.overflow) self.number *= factor.number;
  self.overflow = self.overflow || !fits_a_word(self.number);
  if (self.overflow) self.number = 0;
};

/// The operators that GNU as applies to 64-bit words, not to exact numbers (gas/expr.c, expr()).
enum class WordOperator : std::uint8_t { divide, modulo, shift_left, shift_right, bit_and, bit_or, bit_xor };

/// The reason why there is no result, or nullptr.
const char* apply(WordOperator op, std::int64_t& left, std::int64_t right) {
  const auto bits = static_cast<std::uint64_t>(left);
  const bool whole = right >= 0 && right < 64;
  const auto shift = whole ? static_cast<unsigned>(right) : 0U;
  switch (op) {
    case WordOperator::divide:
    case WordOperator::modulo:
      if (right == 0) return "division by zero";
      if (right == -1 && left == std::numeric_limits<std::int64_t>::min()) return "constant does not fit 64 bits";
      left = op == WordOperator::divide ? left / right : left % right;
      return nullptr;
    case WordOperator::shift_left:
      left = whole ? static_cast<std::int64_t>(bits << shift) : 0;
      return nullptr;
    case WordOperator::shift_right:
      left = whole ? static_cast<std::int64_t>(bits >> shift) : 0;
      return nullptr;
    case WordOperator::bit_and:
      left &= right;
      return nullptr;
    case WordOperator::bit_or:
      left |= right;
      return nullptr;
    case WordOperator::bit_xor:
      left ^= right;
  }
  return nullptr;
}

/// Its low 64 bits, as GNU as has them in an operation on words.
std::int64_t word_of(const Wide& number) {
  return number < 0 ? static_cast<std::int64_t>(number) : static_cast<std::int64_t>(static_cast<std::uint64_t>(number));
}

constexpr auto calculate(WordOperator op) {
  return [op](auto& ctx) {
    Expression& self = x3::_val(ctx);
    const Expression& operand = x3::_attr(ctx);
    constexpr std::string_view kNoSymbol = "a symbol can only have a number added";
    if (!self.symbol.empty()) return give_up(ctx, self.at, kNoSymbol);
    if (!operand.symbol.empty()) return give_up(ctx, operand.at, kNoSymbol);
    self.marked = self.marked || operand.marked;
    self.overflow = self.overflow || operand.overflow || !fits_a_word(self.number) || !fits_a_word(operand.number);
    if (self.overflow) return;
    std::int64_t result = word_of(self.number);
    if (const char* reason = apply(op, result, word_of(operand.number))) return give_up(ctx, operand.at, reason);
    self.number = result;
  };
}

/// `~5` and `!5`: of a word, too.
constexpr auto change_word(std::int64_t (*change)(std::int64_t)) {
  return [change](auto& ctx) {
    Expression& self = x3::_val(ctx);
    self = x3::_attr(ctx);
    if (!self.symbol.empty()) return give_up(ctx, self.at, "a symbol can only have a number added");
    self.overflow = self.overflow || !fits_a_word(self.number);
    self.number = self.overflow ? 0 : change(word_of(self.number));
  };
}
const auto complement = change_word([](std::int64_t word) { return ~word; });
const auto is_zero = change_word([](std::int64_t word) -> std::int64_t { return word == 0 ? 1 : 0; });

const auto allow_mark = [](auto& ctx) { x3::_pass(ctx) = x3::get<DraftTag>(ctx).marks == Marks::dollar; };
const auto mark = [](auto& ctx) {
  x3::_val(ctx) = x3::_attr(ctx);
  x3::_val(ctx).marked = true;
};

const auto add = [](auto& ctx) {
  Expression& self = x3::_val(ctx);
  const Expression& term = x3::_attr(ctx);
  if (!term.symbol.empty()) {
    if (!self.symbol.empty()) return give_up(ctx, term.at, "two symbols in one expression");
    self.symbol = term.symbol;
    self.reloc = term.reloc;
  }
  self.number += term.number;
  self.marked = self.marked || term.marked;
  self.overflow = self.overflow || term.overflow;
};

const auto subtract = [](auto& ctx) {
  Expression& self = x3::_val(ctx);
  const Expression& term = x3::_attr(ctx);
  if (!term.symbol.empty()) {
    return give_up(
        ctx, term.at,
        self.symbol.empty() ? "a symbol cannot be subtracted" : "the difference of two symbols is not known");
  }
  self.number -= term.number;
  self.marked = self.marked || term.marked;
  self.overflow = self.overflow || term.overflow;
};

const auto descend = [](auto& ctx) {
  if (++x3::get<DraftTag>(ctx).depth > kMaxDepth) {
    give_up(ctx, &*x3::_where(ctx).begin(), "expression is nested too deeply");
  }
};
const auto ascend = [](auto& ctx) { --x3::get<DraftTag>(ctx).depth; };

// Grammar.

const x3::rule<struct SumRule, Expression> sum = "sum";
const x3::rule<struct WordsRule, Expression> words = "words";
const x3::rule<struct ProductRule, Expression> product = "product";
const x3::rule<struct FactorRule, Expression> factor = "factor";

const auto blank = x3::omit[*x3::char_(kSpaces)];
const auto digit = x3::char_(kDigits);
const auto number = x3::raw[('0' >> x3::char_("xX") >> +x3::char_("0-9a-fA-F")) | +digit];
// Compilers and C++ mangling use these; bytes from 0x80 on are UTF-8 identifiers.
const auto symbol_start = x3::char_("A-Za-z_.") | x3::char_('\x80', '\xff');
const auto symbol = x3::raw[symbol_start >> *(symbol_start | x3::char_("0-9$"))];
const auto quoted = x3::raw[*('\\' >> x3::char_ | ~x3::char_("\"\\"))];
const auto reloc = '@' >> (x3::raw[+x3::char_("A-Za-z0-9_")][set_reloc] | refuse({}));
// "(%rax)" and "(,%rax,4)" are an address behind the expression, not a part of it.
const auto group_open = '(' >> blank >> !x3::char_("%,)");
const auto missing = refuse("expected a number or a symbol");

// Which operator binds tighter is GNU as's choice, not C's: `|`, `&`, `^` and `!` (or not) before `+` and `-`, and
// shifts with `*` (as manual, "Infix Operators"). x86's as knows no comparison with '='; the others, `&&` and `||`
// yield what no compiler writes.
const auto then = [](const auto& next, const auto& action) { return blank >> (next[action] | missing); };
const auto sum_def = words[assign] >> *(blank >> (('+' >> then(words, add)) | ('-' >> then(words, subtract))));
const auto words_def = product[assign] >>
                       *(blank >> (('&' >> !x3::lit('&') >> then(product, calculate(WordOperator::bit_and))) |
                                   ('|' >> !x3::lit('|') >> then(product, calculate(WordOperator::bit_or))) |
                                   ('^' >> then(product, calculate(WordOperator::bit_xor)))));
const auto product_def = factor[assign] >> *(blank >> (('*' >> then(factor, multiply)) |
                                                       ('/' >> then(factor, calculate(WordOperator::divide))) |
                                                       ('%' >> then(factor, calculate(WordOperator::modulo))) |
                                                       ("<<" >> then(factor, calculate(WordOperator::shift_left))) |
                                                       (">>" >> then(factor, calculate(WordOperator::shift_right)))));
const auto signed_factor = [](char sign, const auto& action) {
  return x3::lit(sign)[descend] >> blank >> (factor[action] | missing) >> x3::eps[ascend];
};
// As GDB reads them, `$3+($10-$8)-$1` marks each of its numbers (amd64-stap-expressions.S of its test suite).
const auto dollar =
    x3::lit('$')[allow_mark] >> x3::eps[descend] >>
    ((!x3::lit('$') >> factor[mark]) | refuse("expected a number or a symbol after '$'")) >> x3::eps[ascend];
const auto factor_def = number[set_number] | (symbol[set_symbol] >> -reloc) |
                        ('"' >> quoted[set_symbol] >> ('"' | refuse("missing closing '\"'")) >> -reloc) |
                        signed_factor('-', negate) | signed_factor('+', assign) | signed_factor('~', complement) |
                        signed_factor('!', is_zero) | dollar |
                        (group_open >> x3::eps[descend] >> (sum[assign] | missing) >> blank >>
                         (')' | refuse("missing ')'")) >> x3::eps[ascend]);

BOOST_SPIRIT_DEFINE(sum, words, product, factor)

/// The name inside the quotes, with `\"` and `\\` resolved.
std::string unescape(std::string_view name) {
  std::string plain;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '\\' && i + 1 < name.size()) ++i;
    plain += name[i];
  }
  return plain;
}

}  // namespace

bool parse_expression(const char*& first, const char* last, Marks marks, Expression& out, Trouble& trouble) noexcept {
  const char* const start = first;
  Draft draft;
  draft.marks = marks;
  const bool parsed = x3::parse(first, last, x3::with<DraftTag>(draft)[sum], out);
  if (draft.at != nullptr) trouble.refuse(draft.at, draft.reason);
  out.at = start != last && *start == '$' ? start + 1 : start;
  return parsed && draft.at == nullptr;
}

std::optional<SymbolRef> symbol_of(const Expression& expression) {
  if (expression.symbol.empty()) return std::nullopt;
  return SymbolRef{unescape(expression.symbol), expression.reloc};
}

bool to_constant(const Expression& expression, ConstOperand& out, Trouble& trouble) {
  if (expression.overflow || !fits_a_word(expression.number)) {
    trouble.refuse(expression.at, "constant does not fit 64 bits");
    return false;
  }
  out.negative = expression.number < 0;
  out.magnitude = static_cast<std::uint64_t>(out.negative ? -expression.number : expression.number);
  out.symbol = symbol_of(expression);
  return true;
}

bool to_displacement(const Expression& expression, std::int64_t& out, Trouble& trouble) {
  if (expression.overflow || !fits_a_word(expression.number) ||
      expression.number > std::numeric_limits<std::int64_t>::max()) {
    trouble.refuse(expression.at, "displacement does not fit 64 bits");
    return false;
  }
  out = static_cast<std::int64_t>(expression.number);
  return true;
}

}  // namespace usdt::parsers
