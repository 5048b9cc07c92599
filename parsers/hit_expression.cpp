// SPDX-License-Identifier: BSD-2-Clause
// Questions about a hit (expression.hpp), with C's operators and precedence.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <boost/spirit/home/x3.hpp>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/try.hpp"
#include "parsers/characters.hpp"
#include "parsers/declared.hpp"
#include "parsers/draft.hpp"
#include "parsers/literal.hpp"
#include "parsers/quote.hpp"
#include "parsers/value_path_prefix.hpp"
#include "usdt/expression.hpp"

namespace usdt {
inline namespace v1 {
namespace {

namespace x3 = boost::spirit::x3;
using Op = Operator;

constexpr std::size_t kMostNodes = 1024;
constexpr int kMostDepth = 64;

/// The expression under construction: operands wait on a stack for the operator that takes them.
struct Draft {
  const char* start = nullptr;
  std::vector<ExpressionNode> stack = {};
  std::vector<ValuePath> values = {};
  std::vector<std::size_t> marks = {};       ///< sizes of the stack at the start of each list under construction
  std::vector<std::string_view> parts = {};  ///< of a list of expressions
  std::vector<std::shared_ptr<const Declaration>> called = {};  ///< by part
  int depth = 0;
  std::size_t nodes = 0;
  bool says_unsigned = false;         ///< the last integer has a "u" at its end
  std::optional<Error> refusal = {};  ///< the first reason why it is none
};
using parsers::draft_of;
using parsers::DraftTag;

void refuse(Draft& draft, ErrorKind kind, std::string reason, const char* at) {
  if (draft.refusal) return;
  draft.refusal = Error{kind, std::move(reason), 0, static_cast<std::uint32_t>(at - draft.start)};
}

/// False where the expression is too large.
bool push(Draft& draft, ExpressionNode node, const char* at) {
  node.column = static_cast<std::uint32_t>(at - draft.start);
  draft.stack.push_back(std::move(node));
  if (++draft.nodes <= kMostNodes) return true;
  refuse(draft, ErrorKind::limit, fmt::format("an expression of more than {} operands and operators", kMostNodes), at);
  return false;
}

/// Makes one node of the last `count` on the stack.
bool reduce(Draft& draft, Op op, std::size_t count) {
  const auto first = draft.stack.end() - static_cast<std::ptrdiff_t>(count);
  ExpressionNode node{.op = op, .column = first->column};
  node.of.assign(std::make_move_iterator(first), std::make_move_iterator(draft.stack.end()));
  draft.stack.erase(first, draft.stack.end());
  const char* at = draft.start + node.column;
  return push(draft, std::move(node), at);
}

std::size_t count_uses(const ExpressionNode& node, std::uint64_t value) {
  std::size_t uses = node.op == Op::value && node.bits == value ? 1 : 0;
  for (const ExpressionNode& each : node.of) uses += count_uses(each, value);
  return uses;
}

/// The number of a path among the values. It takes the place of value `instead`, if that is used but once.
std::uint64_t number_of_value(Draft& draft, ValuePath path, std::uint64_t instead) {
  const auto known = std::ranges::find(draft.values, path.text, &ValuePath::text);
  if (known != draft.values.end()) return static_cast<std::uint64_t>(known - draft.values.begin());
  std::size_t uses = 0;
  for (const ExpressionNode& each : draft.stack) uses += count_uses(each, instead);
  if (uses > 1) instead = draft.values.size();
  if (instead == draft.values.size()) draft.values.emplace_back();
  draft.values[instead] = std::move(path);
  return instead;
}

/// Makes a text of a pointer and its length. A length "end - pointer" is one value, the distance: texts are read by
/// values.
bool reduce_text(Draft& draft) {
  if (!reduce(draft, Op::text_of, 2)) return false;
  const ExpressionNode& pointer = draft.stack.back().of[0];
  ExpressionNode& length = draft.stack.back().of[1];
  const bool distance = length.op == Op::subtract && pointer.op == Op::value && length.of[0].op == Op::value &&
                        length.of[1].op == Op::value && length.of[1].bits == pointer.bits;
  if (!distance) return true;
  const std::uint64_t end = length.of[0].bits;
  auto path = distance_between(draft.values[end], draft.values[pointer.bits]);
  const std::uint64_t number = number_of_value(draft, std::move(path), end);
  length = ExpressionNode{.op = Op::value, .bits = number, .column = length.column};
  return true;
}

// --- leaves, each a parser of its own, since what they are is not said by characters alone ---------------------------

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};
/// Durations in ns, sizes in bytes.
constexpr std::array<Unit, 9> kUnits{{{"ns", 1},
                                      {"us", 1'000},
                                      {"ms", 1'000'000},
                                      {"s", 1'000'000'000},
                                      {"m", 60'000'000'000},
                                      {"h", 3'600'000'000'000},
                                      {"KiB", 1ULL << 10},
                                      {"MiB", 1ULL << 20},
                                      {"GiB", 1ULL << 30}}};

bool is_word(char c) noexcept {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Reads an integer in one of C's notations, up to the end of the digits of its base.
std::from_chars_result read_integer(std::string_view digits, std::uint64_t& value) {
  const char* const end = digits.data() + digits.size();
  if (digits.starts_with("0x") || digits.starts_with("0X")) return std::from_chars(digits.data() + 2, end, value, 16);
  if (digits.starts_with("0b") || digits.starts_with("0B")) return std::from_chars(digits.data() + 2, end, value, 2);
  return std::from_chars(digits.data(), end, value, digits.size() > 1 && digits[0] == '0' ? 8 : 10);
}

/// The node that a whole literal that begins with a digit is; nothing, having said why, where it is none.
std::optional<ExpressionNode> number_of(Draft& draft, std::string_view word) {
  const auto refused = [&](ErrorKind kind, std::string reason) -> std::optional<ExpressionNode> {
    refuse(draft, kind, std::move(reason), word.data());
    return std::nullopt;
  };
  const bool hex = word.starts_with("0x") || word.starts_with("0X");
  const char* const end = word.data() + word.size();
  if (!hex && word.find_first_of(".eE") != word.npos) {
    double real = 0;
    const auto read = std::from_chars(word.data(), end, real);
    if (read.ec != std::errc() || read.ptr != end || !std::isfinite(real))
      return refused(ErrorKind::syntax, fmt::format("'{}' is no number", word));
    return ExpressionNode{.op = Op::real, .bits = std::bit_cast<std::uint64_t>(real)};
  }
  std::uint64_t value = 0;
  const auto read = read_integer(word, value);
  if (read.ec == std::errc::result_out_of_range)
    return refused(ErrorKind::limit, fmt::format("'{}' does not fit 64 bits", word));
  std::string_view rest(read.ptr, static_cast<std::size_t>(end - read.ptr));
  if (read.ec != std::errc()) return refused(ErrorKind::syntax, fmt::format("'{}' is no number", word));
  const auto unit = std::ranges::find(kUnits, rest, &Unit::name);
  if (unit != kUnits.end()) {
    if (value > std::numeric_limits<std::uint64_t>::max() / unit->factor)
      return refused(ErrorKind::limit, fmt::format("'{}' does not fit 64 bits", word));
    value *= unit->factor;
  } else if (rest.find_first_not_of("uUlL") != rest.npos) {
    return refused(ErrorKind::syntax,
                   fmt::format("'{}' is no number; units are ns, us, ms, s, m, h, KiB, MiB, GiB", word));
  }
  draft.says_unsigned = unit == kUnits.end() && rest.find_first_of("uU") != rest.npos;
  const bool beyond = value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return ExpressionNode{.op = Op::integer, .is_unsigned = beyond, .bits = value};
}

/// Makes of "-" and its operand one node. A literal is negated as the number that it is, not modulo 2^64: that of
/// INT64_MIN is there, and what is below has no 64 bits.
bool negate(Draft& draft) {
  ExpressionNode& operand = draft.stack.back();
  if (operand.op != Op::integer || !operand.is_unsigned || draft.says_unsigned) return reduce(draft, Op::negate, 1);
  constexpr std::uint64_t lowest = 1ULL << 63;
  if (operand.bits > lowest) {
    refuse(draft, ErrorKind::limit, fmt::format("-{} does not fit 64 bits", operand.bits),
           draft.start + operand.column);
    return false;
  }
  operand.is_unsigned = false;
  return true;
}

/// A literal that begins with a digit, and all the letters and digits behind it.
struct NumberParser : x3::parser<NumberParser> {
  using attribute_type = x3::unused_type;
  [[maybe_unused]] static constexpr bool has_attribute = false;

  template <class Context, class Rules, class Attribute>
  bool parse(const char*& first, const char* const& last, const Context& ctx, Rules&, Attribute&) const {
    x3::skip_over(first, last, ctx);
    if (first == last || *first < '0' || *first > '9') return false;
    const bool hex = last - first > 1 && (first[1] == 'x' || first[1] == 'X');
    const char* end = first;
    while (end != last &&
           (is_word(*end) ||
            (!hex && (*end == '.' || ((*end == '-' || *end == '+') && (end[-1] == 'e' || end[-1] == 'E'))))))
      ++end;
    Draft& draft = x3::get<DraftTag>(ctx).get();
    auto node = number_of(draft, {first, static_cast<std::size_t>(end - first)});
    if (!node || !push(draft, std::move(*node), first)) return false;
    first = end;
    return true;
  }
};

/// A text in double quotes, or a character in single ones.
struct TextParser : x3::parser<TextParser> {
  using attribute_type = x3::unused_type;
  [[maybe_unused]] static constexpr bool has_attribute = false;

  template <class Context, class Rules, class Attribute>
  bool parse(const char*& first, const char* const& last, const Context& ctx, Rules&, Attribute&) const {
    x3::skip_over(first, last, ctx);
    if (first == last) return false;
    Draft& draft = x3::get<DraftTag>(ctx).get();
    const std::string_view rest(first, static_cast<std::size_t>(last - first));
    ExpressionNode node{.op = Op::text};
    std::size_t length = quoted_length(rest);
    if (length > 0) {
      auto text = parsers::text_of_literal(rest.substr(1, length - 2));
      if (!text) return refused(draft, text.error(), first + 1);
      node.text = std::move(*text);
    } else if (*first == '\'') {
      auto ends = character(rest, node);
      if (!ends) return refused(draft, ends.error(), first + 1);
      length = *ends;
    }
    if (length == 0) {
      if (*first == '"') refuse(draft, ErrorKind::syntax, "the quote does not end", first);
      if (*first == '\'')
        refuse(draft, ErrorKind::syntax, "one character is in single quotes, a text in double ones", first);
      return false;
    }
    if (!push(draft, std::move(node), first)) return false;
    first += length;
    return true;
  }

 private:
  static bool refused(Draft& draft, const Error& error, const char* begin) {
    refuse(draft, error.kind, error.message, begin + error.column.value_or(0));
    return false;
  }

  /// Its length with the quotes; 0: there is none.
  static Result<std::size_t> character(std::string_view rest, ExpressionNode& node) {
    const std::size_t length = rest.size() > 1 && rest[1] == '\\' ? rest.find('\'', 3) : rest.find('\'', 2);
    if (length == rest.npos) return 0;
    const auto inner = TRY(parsers::text_of_literal(rest.substr(1, length - 1)));
    if (inner.size() != 1) return 0;
    node.op = Op::integer;
    // NOLINTNEXTLINE(bugprone-signed-char-misuse): as C has it, '\xff' is -1
    node.bits = static_cast<std::uint64_t>(static_cast<signed char>(inner[0]));
    return length + 1;
  }
};

/// What a value is called: all that is behind "as", up to a comma in no brackets.
struct CalledParser : x3::parser<CalledParser> {
  using attribute_type = x3::unused_type;
  [[maybe_unused]] static constexpr bool has_attribute = false;

  template <class Context, class Rules, class Attribute>
  bool parse(const char*& first, const char* const& last, const Context& ctx, Rules&, Attribute&) const {
    x3::skip_over(first, last, ctx);
    const std::size_t length = parsers::declared_length({first, static_cast<std::size_t>(last - first)});
    first += length;
    return length > 0;
  }
};

/// Whether it is one of the words that are arguments where a site has one of that name: which is known only there.
bool gives_way(std::string_view word) {
  const HitFieldInfo* known = find_hit_field(word);
  return known != nullptr && known->gives_way;
}

/// A path to a value, or one of the words for what is known of every hit.
struct PathParser : x3::parser<PathParser> {
  using attribute_type = x3::unused_type;
  [[maybe_unused]] static constexpr bool has_attribute = false;

  template <class Context, class Rules, class Attribute>
  bool parse(const char*& first, const char* const& last, const Context& ctx, Rules&, Attribute&) const {
    x3::skip_over(first, last, ctx);
    Draft& draft = x3::get<DraftTag>(ctx).get();
    parsers::PathPrefix found = parsers::value_path_prefix(first, last);
    if (found.too_long) refuse(draft, ErrorKind::limit, "more than 64 steps to one value", first);
    if (!found.matched || found.too_long) return false;
    if (!push(draft, node_of(draft, std::move(found.path)), first)) return false;
    first = found.end;
    return true;
  }

 private:
  static ExpressionNode node_of(Draft& draft, ValuePath path) {
    auto* name = std::get_if<std::string>(&path.root);
    if (name != nullptr && path.steps.empty()) {
      const HitFieldInfo* known = find_hit_field(*name);
      if (known != nullptr && !known->gives_way)
        return {.op = Op::field, .bits = static_cast<std::uint64_t>(known->field)};
    }
    // "args.pid" is the argument of that name.
    if (name != nullptr && *name == "args" && !path.steps.empty() &&
        path.steps.front().kind == PathStep::Kind::member) {
      path.root = path.steps.front().name;
      path.steps.erase(path.steps.begin());
      std::string without = path.text.substr(path.text.find('.') + 1);
      if (!gives_way(without)) path.text = std::move(without);
    }
    auto known = std::ranges::find(draft.values, path.text, &ValuePath::text);
    if (known == draft.values.end()) known = draft.values.insert(known, std::move(path));
    return {.op = Op::value, .bits = static_cast<std::uint64_t>(known - draft.values.begin())};
  }
};

const NumberParser number;
const TextParser literal;
const PathParser path;

// --- operators -------------------------------------------------------------------------------------------------------

template <Op op, std::size_t count>
const auto make = [](auto& ctx) { x3::_pass(ctx) = reduce(draft_of(ctx), op, count); };
const auto make_text = [](auto& ctx) { x3::_pass(ctx) = reduce_text(draft_of(ctx)); };
const auto make_negative = [](auto& ctx) { x3::_pass(ctx) = negate(draft_of(ctx)); };
const auto go_deeper = [](auto& ctx) {
  Draft& draft = draft_of(ctx);
  x3::_pass(ctx) = ++draft.depth <= kMostDepth;
  if (draft.depth > kMostDepth)
    refuse(draft, ErrorKind::limit, fmt::format("nested more than {} deep", kMostDepth), &*x3::_where(ctx).begin());
};
const auto come_back = [](auto& ctx) { --draft_of(ctx).depth; };
const auto begin_list = [](auto& ctx) {
  Draft& draft = draft_of(ctx);
  draft.marks.push_back(draft.stack.size() - 1);
};
const auto end_list = [](auto& ctx) {
  Draft& draft = draft_of(ctx);
  const std::size_t from = draft.marks.back();
  draft.marks.pop_back();
  x3::_pass(ctx) = reduce(draft, Op::in, draft.stack.size() - from);
};

template <class Tag>
using Rule = x3::rule<Tag>;
Rule<struct PrimaryTag> const primary("a value");
Rule<struct UnaryTag> const unary("a value");
Rule<struct ProductTag> const product("a value");
Rule<struct SumTag> const sum("a value");
Rule<struct ShiftTag> const shift("a value");
Rule<struct OrderTag> const order("a value");
Rule<struct EqualityTag> const equality("a value");
Rule<struct BitAndTag> const bit_and("a value");
Rule<struct BitXorTag> const bit_xor("a value");
Rule<struct BitOrTag> const bit_or("a value");
Rule<struct AndTag> const all("a value");
Rule<struct OrTag> const any("a value");
Rule<struct WholeTag> const whole("a value");
Rule<struct PartTag> const part("a value");

/// `symbol`, where it is not the beginning of a longer operator.
auto only(char symbol, char longer) { return x3::lexeme[x3::lit(symbol) >> !x3::char_(longer)]; }
const auto word_end = !x3::char_("a-zA-Z0-9_");

const auto length = x3::rule<struct LengthTag>("a length, or ')'") =
    (',' > whole > ')')[make_text] | x3::lit(')')[make<Op::text_of, 1>];
const auto text_of = (x3::lexeme["str" >> word_end] >> '(') > whole > length;
const auto hex = ((x3::lexeme["hex" >> word_end] >> '(') > whole > ')')[make<Op::hex, 1>];
const auto ntop = ((x3::lexeme["ntop" >> word_end] >> '(') > whole > ')')[make<Op::ntop, 1>];
const auto key = x3::rule<struct KeyTag>("a key in quotes") = &x3::lit('"') >> literal;
const auto attribute = ((x3::lexeme["trace_attribute" >> word_end] >> '(') > key > ')')[make<Op::attribute, 1>];
// A path may begin with a parenthesis: "(*p).x". Another text may be an expression in parentheses.
const auto primary_def = number | literal | text_of | hex | ntop | attribute | path | ('(' > whole > ')');
const auto unary_def = x3::eps[go_deeper] >>
                       ((only('!', '=') > unary)[make<Op::logical_not, 1>] |
                        (x3::lit('~') > unary)[make<Op::complement, 1>] | (x3::lit('-') > unary)[make_negative] |
                        (x3::lit('+') > unary) | primary) >>
                       x3::eps[come_back];
const auto product_def = unary >>
                         *((x3::lit('*') > unary)[make<Op::multiply, 2>] | (x3::lit('/') > unary)[make<Op::divide, 2>] |
                           (x3::lit('%') > unary)[make<Op::remainder, 2>]);
const auto sum_def = product >>
                     *((x3::lit('+') > product)[make<Op::add, 2>] | (x3::lit('-') > product)[make<Op::subtract, 2>]);
const auto shift_def = sum >> *((x3::lit("<<") > sum)[make<Op::shift_left, 2>] |
                                (x3::lit(">>") > sum)[make<Op::shift_right, 2>]);
const auto order_def = shift >>
                       *((x3::lit("<=") > shift)[make<Op::less_equal, 2>] |
                         (x3::lit(">=") > shift)[make<Op::greater_equal, 2>] |
                         (x3::lit('<') > shift)[make<Op::less, 2>] | (x3::lit('>') > shift)[make<Op::greater, 2>]);
const auto list = (x3::lexeme["in" >> word_end][begin_list] > '{' > order > *(',' > order) > '}') >> x3::eps[end_list];
const auto equality_def = order >> *((x3::lit("==") > order)[make<Op::equal, 2>] |
                                     (x3::lit("!=") > order)[make<Op::not_equal, 2>] |
                                     (x3::lit("=~") > order)[make<Op::matches, 2>] | list);
const auto bit_and_def = equality >> *(only('&', '&') > equality)[make<Op::bit_and, 2>];
const auto bit_xor_def = bit_and >> *(x3::lit('^') > bit_and)[make<Op::bit_xor, 2>];
const auto bit_or_def = bit_xor >> *(only('|', '|') > bit_xor)[make<Op::bit_or, 2>];
const auto all_def = bit_or >> *(x3::lit("&&") > bit_or)[make<Op::logical_and, 2>];
const auto any_def = all >> *(x3::lit("||") > all)[make<Op::logical_or, 2>];
const auto whole_def = any >> -(x3::lit('?') > whole > ':' > whole)[make<Op::conditional, 3>];

// One expression of a list.
const auto end_part = [](auto& ctx) {
  const auto range = x3::_attr(ctx);
  draft_of(ctx).parts.emplace_back(range.begin(), range.end());
  draft_of(ctx).called.emplace_back();
};
const auto take_name = [](auto& ctx) {
  const auto range = x3::_attr(ctx);
  Draft& draft = draft_of(ctx);
  auto called = parsers::parse_called(std::string_view(range.begin(), range.end()));
  x3::_pass(ctx) = called.has_value();
  if (called)
    draft.called.back() = std::move(*called);
  else
    refuse(draft, called.error().kind, std::move(called.error().message), range.begin());
};
const auto name = x3::rule<struct NameTag>("a name") = x3::raw[CalledParser()][take_name];
const auto part_def = x3::raw[whole][end_part] >> -(x3::lexeme["as" >> word_end] > name);

BOOST_SPIRIT_DEFINE(primary, unary, product, sum, shift, order, equality, bit_and, bit_xor, bit_or, all, any, whole,
                    part)

bool is_in_word(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
std::string_view first_word(std::string_view text) noexcept {
  return text.substr(0, static_cast<std::size_t>(std::ranges::find_if_not(text, is_in_word) - text.begin()));
}
std::string_view last_word(std::string_view text) noexcept {
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  std::size_t size = 0;
  while (size < text.size() && is_in_word(text[text.size() - 1 - size])) ++size;
  return text.substr(text.size() - size);
}

/// Returns a hint for users of other languages, where an expression cannot continue; empty: none fits.
std::string hint(std::string_view before, std::string_view there) {
  const std::string_view word = first_word(there);
  if (there.starts_with('=')) return "; to compare is ==";
  if (there.empty() && before.ends_with('-'))
    return "; 'p->member' has to be in quotes, or the shell takes what is behind > for a file to write to";
  if (word == "and") return "; that is &&";
  if (word == "or") return "; that is ||";
  const std::string_view last = last_word(before);
  if (last == "not" && !there.empty()) return "; not is !";
  const bool is_name = !last.empty() && (last.front() < '0' || last.front() > '9');
  if (there.starts_with('(') && is_name)
    return fmt::format("; there is no function '{}', but str(), hex(), ntop() and sizeof()", last);
  return {};
}

Error syntax_error(std::string_view text, std::string_view expected, const char* at) {
  const auto column = static_cast<std::uint32_t>(at - text.data());
  const std::string_view there = text.substr(column);
  const std::string found = there.empty() ? "the end" : fmt::format("'{}'", there.substr(0, there.find(' ')));
  return {ErrorKind::syntax,
          fmt::format("expected {} at column {} of '{}', found {}{}", expected, column + 1, text, found,
                      hint(text.substr(0, column), there)),
          0, column};
}

}  // namespace

bool TypedExpression::is_word(const ValuePath& value) {
  const auto* root = std::get_if<std::string>(&value.root);
  return root != nullptr && value.steps.empty() && value.text == *root && gives_way(*root);
}

namespace {

/// Parses the whole of `text` by `grammar`.
template <class Grammar>
Result<Draft> parse_whole(std::string_view text, const Grammar& grammar) {
  Draft draft{.start = text.data()};
  const char* at = text.data();
  const char* const end = at + text.size();
  std::string expected = "an operator";
  bool matched = false;
  try {
    matched = x3::phrase_parse(at, end, x3::with<DraftTag>(std::ref(draft))[grammar], x3::char_(parsers::kSpaces));
    if (!matched) expected = "a value";
  } catch (const x3::expectation_failure<const char*>& failure) {
    at = failure.where();
    expected = failure.which();
  }
  while (at != end && (*at == ' ' || *at == '\t')) ++at;
  if (draft.refusal) return fail(std::move(*draft.refusal));
  if (!matched || at != end) return fail(syntax_error(text, expected, at));
  return draft;
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t last = text.find_last_not_of(" \t");
  return text.substr(0, last == text.npos ? 0 : last + 1);
}

}  // namespace

Result<Expression> parse_expression(std::string_view text) {
  auto draft = TRY(parse_whole(text, whole));
  return Expression{std::string(text), std::move(draft.stack.back()), std::move(draft.values)};
}

Result<std::vector<Expression>> parse_expressions(std::string_view text) {
  auto draft = TRY(parse_whole(text, part > *(',' > part)));
  std::vector<Expression> parsed;
  for (std::size_t i = 0; i < draft.stack.size(); ++i)
    parsed.push_back({.text = std::string(without_blanks(draft.parts[i])),
                      .root = std::move(draft.stack[i]),
                      .values = draft.values,
                      .called = std::move(draft.called[i])});
  return parsed;
}

}  // namespace v1
}  // namespace usdt
