// SPDX-License-Identifier: BSD-2-Clause
#include "print_list.hpp"

#include <fmt/format.h>

#include <boost/fusion/include/adapt_struct.hpp>
#include <boost/fusion/include/std_pair.hpp>
#include <boost/spirit/home/x3.hpp>
#include <utility>

namespace usdt_trace {
namespace {

namespace x3 = boost::spirit::x3;
using Form = PrintItem::Form;
using Number = std::uint8_t;
using Argument = boost::variant<Number, std::string>;
using Arguments = std::vector<Argument>;
using ParsedItem = std::pair<Form, Arguments>;

const x3::uint_parser<Number, 10, 1, 3> number;
const auto letter = x3::ascii::alpha | x3::char_('_');
const auto numbered = x3::rule<struct NumberedRule, Number>("argN") = x3::lexeme["arg" >> number >> !letter];
// What looks like a number of an argument is one, or a mistake.
const auto name = x3::rule<struct NameRule, std::string>("name") =
    x3::raw[x3::lexeme[!("arg" >> x3::ascii::digit) >> letter >> *(letter | x3::ascii::digit)]];
const auto argument = x3::rule<struct ArgumentRule, Argument>("argument") = numbered | name;
const auto one = x3::rule<struct OneRule, Arguments>("argument") = x3::repeat(1)[argument];
// A text, and its length.
const auto one_or_two = x3::rule<struct OneOrTwoRule, Arguments>("arguments") = argument >> -(',' >> argument);
const auto text = x3::rule<struct TextRule, ParsedItem>("str(argN)") =
    x3::lexeme["str" >> !(letter | x3::ascii::digit)] >> '(' >> x3::attr(Form::text) >> one_or_two >> ')';
const auto hex = x3::rule<struct HexRule, ParsedItem>("hex(argN)") =
    x3::lexeme["hex" >> !(letter | x3::ascii::digit)] >> '(' >> x3::attr(Form::hex) >> one >> ')';
const auto plain = x3::rule<struct PlainRule, ParsedItem>("argN") = x3::attr(Form::value) >> one;
const auto item = text | hex | plain;

usdt::ArgName name_of(const Argument& parsed) {
  if (const auto* n = boost::get<Number>(&parsed)) return *n;
  return boost::get<std::string>(parsed);
}

std::string label_of(const usdt::ArgName& wanted) {
  if (const auto* n = std::get_if<Number>(&wanted)) return fmt::format("arg{}", *n);
  return std::get<std::string>(wanted);
}

PrintItem item_of(ParsedItem&& parsed) {
  PrintItem out;
  out.form = parsed.first;
  const usdt::ArgName shown = name_of(parsed.second.front());
  if (const auto* n = std::get_if<Number>(&shown))
    out.arg = *n;
  else
    out.name = std::get<std::string>(shown);
  out.label = label_of(shown);
  if (parsed.second.size() > 1) {
    out.length = name_of(parsed.second.back());
    out.label += fmt::format(", {}", label_of(*out.length));
  }
  if (out.form == Form::text) out.label = fmt::format("str({})", out.label);
  if (out.form == Form::hex) out.label = fmt::format("hex({})", out.label);
  return out;
}

}  // namespace

usdt::Result<PrintList> parse_print_list(std::string_view source) {
  auto at = source.begin();
  std::vector<ParsedItem> parsed;
  const bool matched = x3::phrase_parse(at, source.end(), item % ',', x3::space, parsed);
  if (!matched || at != source.end()) {
    const auto column = static_cast<std::uint32_t>(at - source.begin());
    return usdt::fail(
        usdt::Error{usdt::ErrorKind::syntax,
                    fmt::format("--print: expected argN, a name, retval, str(...) or hex(...) at column {} "
                                "of '{}'; arguments count from arg0",
                                column + 1, source),
                    0, column});
  }
  PrintList list;
  for (ParsedItem& each : parsed) list.push_back(item_of(std::move(each)));
  return list;
}

std::optional<std::size_t> position_of(const PrintItem& wanted, const std::vector<usdt::Arg>& args) {
  return usdt::find_arg(args, wanted.arg ? usdt::ArgName(*wanted.arg) : usdt::ArgName(wanted.name));
}

}  // namespace usdt_trace
