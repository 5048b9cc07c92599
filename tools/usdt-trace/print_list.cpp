// SPDX-License-Identifier: BSD-2-Clause
#include "print_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/fusion/include/std_pair.hpp>
#include <boost/spirit/home/x3.hpp>
#include <utility>

#include "words.hpp"

namespace usdt_trace {
namespace {

namespace x3 = boost::spirit::x3;
using Form = PrintItem::Form;
/// The text of a value, as the list has it.
struct Part {
  std::string_view text;
};
using Values = std::vector<Part>;
using ParsedItem = std::pair<Form, Values>;

constexpr auto as_view = [](auto& ctx) {
  const auto& range = x3::_attr(ctx);
  x3::_val(ctx).text = {&*range.begin(), static_cast<std::size_t>(range.end() - range.begin())};
};

const auto letter = x3::ascii::alnum | x3::char_('_');
x3::rule<struct NestedRule> const nested("a value");
const auto nested_def = '(' >> *(~x3::char_("()") | nested) >> ')';
BOOST_SPIRIT_DEFINE(nested)
const auto value = x3::rule<struct ValueRule, Part>("a value") =
    x3::raw[x3::lexeme[+(~x3::char_("(),") | nested)]][as_view];
const auto one = x3::rule<struct OneRule, Values>("a value") = x3::repeat(1)[value];
// A text, and its length.
const auto one_or_two = x3::rule<struct OneOrTwoRule, Values>("values") = value >> -(',' >> value);
const auto text = x3::rule<struct TextRule, ParsedItem>("str(argN)") = x3::lexeme["str" >> !letter] >> '(' >>
                                                                       x3::attr(Form::text) >> one_or_two >> ')';
const auto hex = x3::rule<struct HexRule, ParsedItem>("hex(argN)") = x3::lexeme["hex" >> !letter] >> '(' >>
                                                                     x3::attr(Form::hex) >> one >> ')';
const auto address = x3::rule<struct AddressRule, ParsedItem>("ntop(argN)") = x3::lexeme["ntop" >> !letter] >> '(' >>
                                                                              x3::attr(Form::address) >> one >> ')';
const auto plain = x3::rule<struct PlainRule, ParsedItem>("argN") = x3::attr(Form::value) >> one;
const auto item = text | hex | address | plain;

usdt::Error expected(std::size_t column, std::string_view source) {
  return {usdt::ErrorKind::syntax,
          fmt::format("--print: expected argN, a name, retval, a member, str(...), hex(...) or ntop(...) at column {} "
                      "of '{}'; arguments count from arg0",
                      column + 1, source),
          0, static_cast<std::uint32_t>(column)};
}

/// Column of a part of `source`, and of something within it.
std::size_t column_of(std::string_view part, std::string_view source, std::uint32_t within) {
  const std::size_t blanks = std::min(part.find_first_not_of(' '), part.size());
  return static_cast<std::size_t>(part.data() - source.data()) + blanks + within;
}

/// "args.pid" is the argument of that name, as in questions.
bool take_argument(usdt::ValuePath& path) {
  const auto* name = std::get_if<std::string>(&path.root);
  if (name == nullptr || *name != "args" || path.steps.empty() ||
      path.steps.front().kind != usdt::PathStep::Kind::member)
    return false;
  path.root = path.steps.front().name;
  path.steps.erase(path.steps.begin());
  path.text.erase(0, path.text.find('.') + 1);
  return true;
}

/// The word that an item is, in the forms that can show it.
usdt::Result<std::optional<usdt::HitField>> word_in(const PrintItem& shown) {
  const auto word = word_of(shown.value);
  if (!word || shown.form == Form::value || (shown.form == Form::hex && !is_text(*word))) return word;
  if (usdt::TypedExpression::is_word(shown.value)) return std::nullopt;
  return usdt::fail(usdt::ErrorKind::invalid_argument,
                    fmt::format("--print {0}: {1} is what is known of every hit; an argument of that name is args.{1}",
                                shown.label, shown.value.text));
}

usdt::Result<PrintItem> item_of(const ParsedItem& parsed, std::string_view source) {
  PrintItem out;
  out.form = parsed.first;
  std::string label;
  bool argument = false;
  for (const Part& part : parsed.second) {
    auto path = usdt::parse_value_path(part.text);
    if (!path) return usdt::fail(expected(column_of(part.text, source, path.error().column.value_or(0)), source));
    const bool is_length = &part != &parsed.second.front();
    label += fmt::format("{}{}", is_length ? ", " : "", path->text);
    if (!is_length) {
      argument = take_argument(*path);
      out.value = std::move(*path);
    } else if (path->steps.empty())
      out.length = path->root;
    else
      return usdt::fail(expected(column_of(part.text, source, path->steps.front().column), source));
  }
  if (out.form == Form::text) label = fmt::format("str({})", label);
  if (out.form == Form::address) label = fmt::format("ntop({})", label);
  if (out.form == Form::hex) label = fmt::format("hex({})", label);
  out.label = std::move(label);
  if (argument) return out;
  auto word = word_in(out);
  if (!word) return usdt::fail(word.error());
  out.word = *word;
  return out;
}

}  // namespace

std::optional<std::uint64_t> integer_bits(const usdt::Value& read) noexcept {
  if (const auto* number = std::get_if<std::int64_t>(&read)) return static_cast<std::uint64_t>(*number);
  const auto* number = std::get_if<std::uint64_t>(&read);
  return number != nullptr ? std::optional(*number) : std::nullopt;
}

std::string ipv4_text(std::uint64_t bits) {
  return fmt::format("{}.{}.{}.{}", bits & 0xff, bits >> 8 & 0xff, bits >> 16 & 0xff, bits >> 24 & 0xff);
}

usdt::ArgName name_of(const usdt::ValuePath& path) { return path.steps.empty() ? path.root : usdt::ArgName(path.text); }

usdt::Result<PrintList> parse_print_list(std::string_view source) {
  const char* at = source.data();
  const char* const end = at + source.size();
  std::vector<ParsedItem> parsed;
  const bool matched = x3::phrase_parse(at, end, item % ',', x3::space, parsed);
  if (!matched || at != end) return usdt::fail(expected(static_cast<std::size_t>(at - source.data()), source));
  PrintList list;
  for (const ParsedItem& each : parsed) {
    auto made = item_of(each, source);
    if (!made) return usdt::fail(made.error());
    list.push_back(std::move(*made));
  }
  return list;
}

std::optional<std::size_t> position_of(const PrintItem& wanted, const std::vector<usdt::Arg>& args) {
  return wanted.gives_way() ? usdt::find_arg(args, name_of(wanted.value)) : std::nullopt;
}

}  // namespace usdt_trace
