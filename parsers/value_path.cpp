// SPDX-License-Identifier: BSD-2-Clause
// Ways from an argument to a value, in the syntax of C.
#include "usdt/value_path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/fusion/include/std_pair.hpp>
#include <boost/spirit/home/x3.hpp>
#include <utility>

#include "parsers/characters.hpp"
#include "parsers/draft.hpp"
#include "parsers/value_path_prefix.hpp"

namespace usdt {
inline namespace v1 {
namespace {

namespace x3 = boost::spirit::x3;
using Kind = PathStep::Kind;

constexpr std::size_t kMostSteps = 64;

/// The path under construction. Operators are met in the order of the text; those before an operand are taken after
/// those behind it.
struct Draft {
  const char* start = nullptr;
  ArgName root = {};
  std::vector<PathStep> steps = {};
  int depth = 0;
  bool too_long = false;
};
using parsers::draft_of;
using parsers::DraftTag;

template <class Context>
void add(Context& ctx, PathStep step, const char* at) {
  Draft& draft = draft_of(ctx);
  step.column = static_cast<std::uint32_t>(at - draft.start);
  draft.steps.push_back(std::move(step));
  draft.too_long |= draft.steps.size() > kMostSteps;
  x3::_pass(ctx) = !draft.too_long;
}

/// The operator before an operand. Its rule keeps it until the operand is known.
struct Front {
  Kind kind = Kind::dereference;
  std::string name = {};
  const char* at = nullptr;
};

const auto set_root = [](auto& ctx) { draft_of(ctx).root = std::string(matched(ctx)); };
const auto set_number = [](auto& ctx) { draft_of(ctx).root = x3::_attr(ctx); };

template <Kind kind>
const auto add_member = [](auto& ctx) {
  std::string name(matched(ctx));
  if (!name.empty() && name.front() >= '0' && name.front() <= '9') name.insert(0, "__");
  add(ctx, {.kind = kind, .name = std::move(name)}, &*x3::_attr(ctx).begin());
};
const auto add_element = [](auto& ctx) {
  add(ctx, {.kind = Kind::element, .index = static_cast<std::uint64_t>(x3::_attr(ctx))}, &*x3::_where(ctx).begin());
};
const auto add_front = [](auto& ctx) {
  const Front& front = x3::_val(ctx);
  add(ctx, {.kind = front.kind, .name = front.name}, front.at);
};
const auto set_star = [](auto& ctx) {
  x3::_val(ctx) = Front{.kind = Kind::dereference, .at = &*x3::_where(ctx).begin()};
};
const auto set_ampersand = [](auto& ctx) {
  x3::_val(ctx) = Front{.kind = Kind::address_of, .at = &*x3::_where(ctx).begin()};
};
/// "(req)" is an operand in parentheses, "(struct request *)" a type.
const auto set_cast = [](auto& ctx) {
  std::string type(matched(ctx));
  type.erase(type.find_last_not_of(' ') + 1);
  const bool keyword =
      std::ranges::any_of(std::initializer_list<std::string_view>{"struct ", "union ", "enum ", "class "},
                          [&](std::string_view word) { return type.starts_with(word); });
  x3::_pass(ctx) = type.ends_with('*') || keyword;
  x3::_val(ctx) = Front{.kind = Kind::cast, .name = std::move(type), .at = &*x3::_attr(ctx).begin()};
};
const auto go_deeper = [](auto& ctx) { x3::_pass(ctx) = draft_of(ctx).depth++ < static_cast<int>(kMostSteps); };
const auto come_back = [](auto& ctx) { --draft_of(ctx).depth; };

const auto space = x3::char_(parsers::kSpaces);
const auto digit = x3::char_(parsers::kDigits);
const auto letter = x3::char_(parsers::kLetters);
const auto more = x3::char_(parsers::kLettersAndDigits);
const x3::uint_parser<std::uint8_t, 10, 1, 3> argument_number;
const x3::int_parser<std::int64_t, 10, 1, 18> index;

x3::rule<struct UnaryRule> const unary("a value");
x3::rule<struct FrontedRule, Front> const fronted("a value");

const auto numbered = x3::lexeme["arg" >> argument_number >> !more];
// An "arg" with a digit behind it is a number of an argument, or a mistake, and no name.
const auto scope = letter >> *more >> "::";
const auto name = x3::raw[x3::lexeme[!("arg" >> digit) >> *scope >> letter >> *more]];
const auto member = x3::raw[x3::lexeme[+more]];
const auto type = x3::raw[x3::lexeme[letter >> +~x3::char_("()")]];

const auto operand = numbered[set_number] | name[set_root] | ('(' >> unary >> ')');
const auto behind = ("->" >> member[add_member<Kind::pointer_member>]) | ('.' >> member[add_member<Kind::member>]) |
                    ('[' >> index[add_element] >> ']');
const auto fronted_def = ((x3::lit('*')[set_star]) | (x3::lit('&')[set_ampersand]) | ('(' >> type[set_cast] >> ')')) >>
                         unary >> x3::eps[add_front];
const auto unary_def = x3::eps[go_deeper] >> (fronted | (operand >> *behind)) >> x3::eps[come_back];
// "sizeof(struct foo)", or of a value.
const auto type_name =
    x3::raw[x3::lexeme[(x3::lit("struct") | "union" | "enum" | "class") >> +space >> letter >> *~x3::char_("()")]];
const auto size_of = x3::lexeme["sizeof" >> !more] >> '(' >> (type_name[set_root] | unary) >> ')';

BOOST_SPIRIT_DEFINE(unary, fronted)

}  // namespace

}  // namespace v1
}  // namespace usdt

namespace usdt::parsers {

PathPrefix value_path_prefix(const char* at, const char* end) {
  const char* const start = at;
  PathPrefix found{.end = at};
  Draft draft{.start = start};
  const bool sized = x3::phrase_parse(at, end, x3::with<DraftTag>(std::ref(draft))[size_of], space);
  if (!sized) {
    draft = {.start = start};
    at = start;
    found.matched = x3::phrase_parse(at, end, x3::with<DraftTag>(std::ref(draft))[unary], space);
  }
  found.matched |= sized;
  found.end = at;
  found.too_long = draft.too_long;
  if (!found.matched) return found;
  if (sized) draft.steps.push_back({.kind = Kind::size_of});
  const char* last = at;
  while (last > start && space.test(last[-1], x3::unused)) --last;
  found.path = {std::string(start, last), std::move(draft.root), std::move(draft.steps)};
  return found;
}

}  // namespace usdt::parsers

namespace usdt {
inline namespace v1 {

ValuePath distance_between(ValuePath end, const ValuePath& from) {
  const auto column = static_cast<std::uint32_t>(end.text.size() + 1);
  end.steps.push_back({.kind = Kind::distance, .name = from.text, .column = column});
  end.text = fmt::format("{} - {}", end.text, from.text);
  return end;
}

Result<ValuePath> parse_value_path(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  const char* const last = text.data() + text.size();
  parsers::PathPrefix found = parsers::value_path_prefix(text.data(), last);
  if (found.matched && found.end != last && *found.end == '-') {
    const parsers::PathPrefix from = parsers::value_path_prefix(std::find_if_not(found.end + 1, last, blank), last);
    if (from.matched && from.end == last) found.path = distance_between(std::move(found.path), from.path);
    if (from.matched) found.end = from.end;
    found.too_long |= from.too_long;
  }
  const auto column = static_cast<std::uint32_t>(found.end - text.data());
  if (found.too_long)
    return fail(Error{ErrorKind::limit, fmt::format("more than {} steps to one value", kMostSteps), 0, column});
  if (!found.matched || column != text.size())
    return fail(Error{ErrorKind::syntax,
                      fmt::format("expected an argument or a way to a member, such as arg0, req->peer.port, *p or "
                                  "((struct foo *)arg1)->x, at column {} of '{}'",
                                  column + 1, text),
                      0, column});
  return std::move(found.path);
}

}  // namespace v1
}  // namespace usdt
