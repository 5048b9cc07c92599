// SPDX-License-Identifier: BSD-2-Clause
#include "parsers/print_items.hpp"

#include <boost/fusion/include/std_pair.hpp>
#include <boost/spirit/home/x3.hpp>
#include <optional>
#include <utility>

#include "parsers/characters.hpp"
#include "parsers/declared.hpp"

namespace usdt::parsers {
namespace {

namespace x3 = boost::spirit::x3;

/// What a value is called: all that is behind "as", up to a comma in no brackets.
struct CalledParser : x3::parser<CalledParser> {
  using attribute_type = x3::unused_type;
  [[maybe_unused]] static constexpr bool has_attribute = false;

  template <class Context, class Rules, class Attribute>
  bool parse(const char*& first, const char* const& last, const Context& ctx, Rules&, Attribute&) const {
    x3::skip_over(first, last, ctx);
    const std::size_t length = declared_length({first, static_cast<std::size_t>(last - first)});
    first += length;
    return length > 0;
  }
};

/// The rules have short names.
namespace print_grammar {

/// A piece of the list.
struct Part {
  std::string_view text;
};
using Values = std::vector<Part>;
using Item = std::pair<PrintForm, Values>;
using Called = std::pair<Item, Values>;

constexpr auto kAsView = [](auto& ctx) {
  const auto& range = x3::_attr(ctx);
  x3::_val(ctx).text = {&*range.begin(), static_cast<std::size_t>(range.end() - range.begin())};
};

const auto letter = x3::char_(parsers::kLettersAndDigits);
x3::rule<struct NestedRule> const nested("a value");
// A text in quotes may have any characters.
const auto quotes = '"' >> *(('\\' >> x3::char_) | ~x3::char_("\"\\")) >> '"';
const auto braces = '{' >> *(quotes | ~x3::char_("{}()\"")) >> '}';
const auto nested_def = '(' >> *(quotes | ~x3::char_("()") | nested) >> ')';
BOOST_SPIRIT_DEFINE(nested)
const auto value = x3::rule<struct ValueRule, Part>("a value") =
    x3::raw[x3::lexeme[+(~x3::char_("(),") | nested)]][kAsView];
const auto one = x3::rule<struct OneRule, Values>("a value") = x3::repeat(1)[value];
// A text, and its length.
const auto one_or_two = x3::rule<struct OneOrTwoRule, Values>("values") = value >> -(',' >> value);
const auto text = x3::rule<struct TextRule, Item>("str(argN)") = x3::lexeme["str" >> !letter] >> '(' >>
                                                                 x3::attr(PrintForm::text) >> one_or_two >> ')';
const auto hex = x3::rule<struct HexRule, Item>("hex(argN)") = x3::lexeme["hex" >> !letter] >> '(' >>
                                                               x3::attr(PrintForm::hex) >> one >> ')';
const auto address = x3::rule<struct AddressRule, Item>("ntop(argN)") = x3::lexeme["ntop" >> !letter] >> '(' >>
                                                                        x3::attr(PrintForm::address) >> one_or_two >>
                                                                        ')';
const auto buffer = x3::rule<struct BufferRule, Item>("buf(argN, N)") = x3::lexeme["buf" >> !letter] >> '(' >>
                                                                        x3::attr(PrintForm::bytes) >> one_or_two >> ')';
const auto quoted = x3::rule<struct QuotedRule, Values>("a key in quotes") =
    x3::repeat(1)[x3::rule<struct KeyRule, Part>("a key in quotes") = x3::raw[x3::lexeme[quotes]][kAsView]];
const auto attribute = x3::rule<struct AttributeRule, Item>("trace_attribute(\"KEY\")") =
    x3::lexeme["trace_attribute" >> !letter] >> '(' >> x3::attr(PrintForm::attribute) >> quoted >> ')';
// A value that is in no parentheses ends before "as", too.
const auto as_behind = +x3::char_(parsers::kSpaces) >> "as" >> +x3::char_(parsers::kSpaces);
const auto bare = x3::rule<struct BareRule, Part>("a value") =
    x3::raw[x3::lexeme[+(quotes | braces | (~x3::char_("(),") - as_behind) | nested)]][kAsView];
const auto plain = x3::rule<struct PlainRule, Item>("argN") = x3::attr(PrintForm::value) >> x3::repeat(1)[bare];
const auto item = x3::rule<struct ItemRule, Item>("a value") = text | hex | address | buffer | attribute | plain;
const auto name = x3::rule<struct NameRule, Part>("a name") = x3::raw[CalledParser()][kAsView];
const auto names = x3::rule<struct NamesRule, Values>("a name") = x3::omit[x3::lexeme["as" >> !letter]] >>
                                                                  x3::repeat(1)[name];
const auto called = x3::rule<struct CalledRule, Called>("a value") = item >> (names | x3::attr(Values()));

}  // namespace print_grammar
}  // namespace

/// Where parentheses are nested so deep that nobody wrote them; nothing: nowhere. Each is a call of the grammar.
std::optional<std::size_t> too_deep(std::string_view list) {
  constexpr std::size_t most = 256;
  std::size_t depth = 0;
  for (std::size_t at = 0; at < list.size(); ++at) {
    if (list[at] == '(' && ++depth > most) return at;
    if (list[at] == ')' && depth > 0) --depth;
  }
  return std::nullopt;
}

tl::expected<std::vector<PrintItemText>, std::size_t> split_print_list(std::string_view list) {
  if (const auto at = too_deep(list)) return tl::unexpected(*at);
  const char* at = list.data();
  const char* const end = at + list.size();
  std::vector<print_grammar::Called> parsed;
  const bool matched = x3::phrase_parse(at, end, print_grammar::called % ',', x3::char_(parsers::kSpaces), parsed);
  if (!matched || at != end) return tl::unexpected(static_cast<std::size_t>(at - list.data()));
  std::vector<PrintItemText> items;
  for (const auto& [parts, name] : parsed) {
    PrintItemText& item = items.emplace_back(PrintItemText{.form = parts.first});
    for (const print_grammar::Part& value : parts.second) item.values.push_back(value.text);
    if (!name.empty()) item.called = name.front().text;
  }
  return items;
}

}  // namespace usdt::parsers
