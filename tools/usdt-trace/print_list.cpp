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
using ParsedItem = std::pair<Form, std::uint8_t>;

const x3::uint_parser<std::uint8_t, 10, 1, 3> number;
const auto argument = x3::lexeme["arg" >> number];
const auto plain = x3::rule<struct PlainRule, ParsedItem>("argN") = x3::attr(Form::value) >> argument;
const auto text = x3::rule<struct TextRule, ParsedItem>("str(argN)") = "str" >> x3::attr(Form::text) >> '(' >> argument
                                                                       >> ')';
const auto hex = x3::rule<struct HexRule, ParsedItem>("hex(argN)") = "hex" >> x3::attr(Form::hex) >> '(' >> argument >>
                                                                     ')';
const auto item = plain | text | hex;

std::string label_of(const ParsedItem& parsed) {
  switch (parsed.first) {
    case Form::text:
      return fmt::format("str(arg{})", parsed.second);
    case Form::hex:
      return fmt::format("hex(arg{})", parsed.second);
    case Form::value:
      break;
  }
  return fmt::format("arg{}", parsed.second);
}

}  // namespace

usdt::Result<PrintList> parse_print_list(std::string_view source) {
  auto at = source.begin();
  std::vector<ParsedItem> parsed;
  const bool matched = x3::phrase_parse(at, source.end(), item % ',', x3::space, parsed);
  if (!matched || at != source.end()) {
    const auto column = static_cast<std::uint32_t>(at - source.begin());
    return usdt::fail(usdt::Error{usdt::ErrorKind::syntax,
                                  fmt::format("--print: expected argN, str(argN) or hex(argN) at column {} of '{}'; "
                                              "arguments count from arg0",
                                              column + 1, source),
                                  0, column});
  }
  PrintList list;
  for (const ParsedItem& p : parsed) list.push_back({p.first, p.second, label_of(p)});
  return list;
}

}  // namespace usdt_trace
