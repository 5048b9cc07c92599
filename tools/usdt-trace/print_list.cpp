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
using ParsedItem = std::pair<Form, Argument>;

const x3::uint_parser<Number, 10, 1, 3> number;
const auto letter = x3::ascii::alpha | x3::char_('_');
const auto numbered = x3::rule<struct NumberedRule, Number>("argN") = x3::lexeme["arg" >> number >> !letter];
// What looks like a number of an argument is one, or a mistake.
const auto name = x3::rule<struct NameRule, std::string>("name") =
    x3::raw[x3::lexeme[!("arg" >> x3::ascii::digit) >> letter >> *(letter | x3::ascii::digit)]];
const auto argument = x3::rule<struct ArgumentRule, Argument>("argument") = numbered | name;
const auto text = x3::rule<struct TextRule, ParsedItem>("str(argN)") =
    x3::lexeme["str" >> !(letter | x3::ascii::digit)] >> '(' >> x3::attr(Form::text) >> argument >> ')';
const auto hex = x3::rule<struct HexRule, ParsedItem>("hex(argN)") =
    x3::lexeme["hex" >> !(letter | x3::ascii::digit)] >> '(' >> x3::attr(Form::hex) >> argument >> ')';
const auto plain = x3::rule<struct PlainRule, ParsedItem>("argN") = x3::attr(Form::value) >> argument;
const auto item = text | hex | plain;

PrintItem item_of(ParsedItem&& parsed) {
  PrintItem out;
  out.form = parsed.first;
  if (const auto* n = boost::get<Number>(&parsed.second)) {
    out.arg = *n;
    out.label = fmt::format("arg{}", *n);
  } else {
    out.label = out.name = boost::get<std::string>(std::move(parsed.second));
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
  std::optional<std::size_t> found;
  for (std::size_t n = 0; n < args.size(); ++n) {
    if (wanted.arg ? *wanted.arg == n && !args[n].result : args[n].name == wanted.name && !args[n].result) found = n;
    if (args[n].result && wanted.name == kReturnValue) return n;
  }
  return found;
}

}  // namespace usdt_trace
