// SPDX-License-Identifier: BSD-2-Clause
#include "print_list.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/fusion/include/std_pair.hpp>
#include <boost/spirit/home/x3.hpp>
#include <cctype>
#include <charconv>
#include <utility>

#include "common/command_line.hpp"
#include "words.hpp"

namespace usdt_trace {
namespace {

namespace x3 = boost::spirit::x3;
using Form = PrintItem::Form;
/// What a list is made of; its rules have short names.
namespace grammar {

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
                                                                              x3::attr(Form::address) >> one_or_two >>
                                                                              ')';
const auto buffer = x3::rule<struct BufferRule, ParsedItem>("buf(argN, N)") = x3::lexeme["buf" >> !letter] >> '(' >>
                                                                              x3::attr(Form::bytes) >> one_or_two >>
                                                                              ')';
const auto plain = x3::rule<struct PlainRule, ParsedItem>("argN") = x3::attr(Form::value) >> one;
const auto item = text | hex | address | buffer | plain;

}  // namespace grammar

usdt::Error expected(std::size_t column, std::string_view source) {
  const std::string_view part = source.substr(std::min(column, source.size()));
  return {
      usdt::ErrorKind::syntax,
      fmt::format(
          "--print: expected argN, a name, retval, a member, str(...), hex(...), ntop(...) or buf(...) at column {} "
          "of '{}'; arguments count from arg0{}",
          column + 1, source,
          part.substr(0, part.find(',')).ends_with('-')
              ? "; 'p->member' has to be in quotes, or the shell takes what is behind > for a file to write to"
              : ""),
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
usdt::Result<std::optional<usdt::HitField>> word_in(const PrintItem& shown, std::optional<usdt::HitField> word) {
  if (!word || shown.form == Form::value || (shown.form == Form::hex && !is_text(*word))) return word;
  if (*word == usdt::HitField::elapsed || *word == usdt::HitField::ip || *word == usdt::HitField::provider ||
      *word == usdt::HitField::name)
    return std::nullopt;
  return usdt::fail(usdt::ErrorKind::invalid_argument,
                    fmt::format("--print {0}: {1} is what is known of every hit; an argument of that name is args.{1}",
                                shown.label, to_string(*word)));
}

std::string_view name_of(Form form) {
  switch (form) {
    case Form::text:
      return "str";
    case Form::hex:
      return "hex";
    case Form::address:
      return "ntop";
    case Form::bytes:
      return "buf";
    case Form::value:
      break;
  }
  return {};
}

/// "16", "0x10"; nothing: it is no number.
std::optional<std::uint64_t> number_in(std::string_view digits) {
  const bool hexadecimal = digits.starts_with("0x");
  if (hexadecimal) digits.remove_prefix(2);
  std::uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, hexadecimal ? 16 : 10);
  return error == std::errc() && end == digits.data() + digits.size() ? std::optional(number) : std::nullopt;
}

usdt::Result<usdt::ValuePath> path_in(std::string_view part, std::string_view source) {
  auto path = usdt::parse_value_path(part);
  if (!path) return usdt::fail(expected(column_of(part, source, path.error().column.value_or(0)), source));
  return path;
}

/// How many bytes: a number, or of bytes that are no address the value that says it.
usdt::Result<void> add_size(PrintItem& out, std::string_view part, std::string_view source) {
  usdt::PathStep& last = out.value.steps.back();
  const auto number = number_in(usdt::tools::without_blanks(part));
  const bool fits = number && (out.form == Form::bytes ? *number > 0 : *number == 4 || *number == 16);
  if (!fits && (number || out.form == Form::address))
    return usdt::fail(usdt::ErrorKind::invalid_argument,
                      fmt::format("--print: {} at column {} of '{}'",
                                  out.form == Form::bytes ? "no bytes" : "an address has 4 or 16 bytes",
                                  column_of(part, source, 0) + 1, source));
  if (number) {
    last.kind = usdt::PathStep::Kind::bytes;
    last.index = *number;
    return {};
  }
  auto path = path_in(part, source);
  if (!path) return usdt::fail(path.error());
  last.name = path->text;
  out.size = std::move(*path);
  return {};
}

/// The length of a text.
usdt::Result<void> add_length(PrintItem& out, std::string_view part, std::string_view source) {
  auto path = path_in(part, source);
  if (!path) return usdt::fail(path.error());
  if (!path->steps.empty()) return usdt::fail(expected(column_of(part, source, path->steps.front().column), source));
  out.length = path->root;
  return {};
}

/// What bytes are called in a site's list: those of a span's end as all else is that the end has, "end.buf(p, n)".
std::string name_of_bytes(std::string label) {
  constexpr std::string_view kEnd = "end.";
  const std::size_t first = label.find('(') + 1;
  if (label.compare(first, kEnd.size(), kEnd) != 0) return label;
  const std::size_t comma = label.rfind(", ");
  if (comma != label.npos && label.compare(comma + 2, kEnd.size(), kEnd) == 0) label.erase(comma + 2, kEnd.size());
  label.erase(first, kEnd.size());
  return std::string(kEnd) + label;
}

usdt::Result<PrintItem> item_of(const grammar::ParsedItem& parsed, std::string_view source) {
  using Kind = usdt::PathStep::Kind;
  PrintItem out;
  out.form = parsed.first;
  auto path = path_in(parsed.second.front().text, source);
  if (!path) return usdt::fail(path.error());
  out.label = path->text;
  const bool argument = take_argument(*path);
  const auto word = argument ? std::nullopt : word_of(*path);
  out.value = std::move(*path);
  const bool of_bytes = out.form == Form::bytes || out.form == Form::address;
  if (of_bytes) out.value.steps.push_back({.kind = out.form == Form::bytes ? Kind::bytes : Kind::address});
  if (parsed.second.size() > 1) {
    const std::string_view length = parsed.second.back().text;
    auto added = of_bytes ? add_size(out, length, source) : add_length(out, length, source);
    if (!added) return usdt::fail(added.error());
    out.label += fmt::format(", {}", usdt::tools::without_blanks(length));
  }
  if (out.form != Form::value) out.label = fmt::format("{}({})", name_of(out.form), out.label);
  if (of_bytes) out.value.text = name_of_bytes(out.label);
  auto meant = word_in(out, word);
  if (!meant) return usdt::fail(meant.error());
  out.word = *meant;
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

std::string address_text(std::string_view bytes) {
  std::array<char, INET6_ADDRSTRLEN> shown{};
  const int family = bytes.size() == 4 ? AF_INET : AF_INET6;
  const bool known = bytes.size() == 4 || bytes.size() == 16;
  return known && ::inet_ntop(family, bytes.data(), shown.data(), shown.size()) != nullptr ? std::string(shown.data())
                                                                                           : std::string();
}

usdt::Result<std::string> address_in(const usdt::Event& event, std::size_t n) {
  const usdt::Arg& arg = event.arg_info(n);
  if (arg.length) {
    const auto bytes = event.text(n);
    if (!bytes) return usdt::fail(bytes.error());
    std::string shown = bytes->truncated ? std::string() : address_text(bytes->bytes);
    if (shown.empty())
      return usdt::fail(usdt::ErrorKind::invalid_argument, "an address has 4 or 16 bytes, and these are others");
    return shown;
  }
  const usdt::Value read = event.value(n);
  if (const auto* unread = std::get_if<usdt::ArgError>(&read))
    return usdt::fail(usdt::ErrorKind::io, std::string(unread->reason));
  const auto bits = arg.type.kind == usdt::TypeKind::integer ? integer_bits(read) : std::nullopt;
  if (!bits) return usdt::fail(usdt::ErrorKind::invalid_argument, fmt::format("{} is no number", arg.name()));
  return ipv4_text(*bits);
}

std::string bytes_text(std::string_view bytes) {
  std::string shown;
  for (const char c : bytes) {
    const bool plain_character = c >= ' ' && c <= '~' && c != '"' && c != '\\';
    shown += plain_character ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return shown;
}

std::string hex_digits(std::string_view bytes, bool upper) {
  std::string digits;
  for (const char c : bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(c));
  if (upper)
    std::ranges::transform(digits, digits.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return digits;
}

usdt::ArgName name_of(const usdt::ValuePath& path) { return path.steps.empty() ? path.root : usdt::ArgName(path.text); }

bool names(const PrintList& list, usdt::HitField word) noexcept {
  return std::ranges::any_of(list, [word](const PrintItem& each) { return each.word == word; });
}

usdt::Result<PrintList> parse_print_list(std::string_view source) {
  const char* at = source.data();
  const char* const end = at + source.size();
  std::vector<grammar::ParsedItem> parsed;
  const bool matched = x3::phrase_parse(at, end, grammar::item % ',', x3::space, parsed);
  if (!matched || at != end) return usdt::fail(expected(static_cast<std::size_t>(at - source.data()), source));
  PrintList list;
  for (const grammar::ParsedItem& each : parsed) {
    auto made = item_of(each, source);
    if (!made) return usdt::fail(made.error());
    list.push_back(std::move(*made));
  }
  return list;
}

std::optional<std::size_t> position_of(const PrintItem& wanted, const std::vector<usdt::Arg>& args) {
  if (!wanted.gives_way()) return std::nullopt;
  const auto found = usdt::find_arg(args, name_of(wanted.value));
  const auto& steps = wanted.value.steps;
  if (found || steps.empty() || steps.back().kind != usdt::PathStep::Kind::address || !steps.back().name.empty() ||
      steps.back().index != 0)
    return found;
  // Of recordings that were made before there were others than of IPv4: the number itself.
  if (steps.size() == 1) return usdt::find_arg(args, wanted.value.root);
  const bool of_end = steps.size() == 2 && wanted.value.root == usdt::ArgName("end");
  return of_end ? usdt::find_arg(args, usdt::ArgName("end." + steps.front().name)) : std::nullopt;
}

}  // namespace usdt_trace
