// SPDX-License-Identifier: BSD-2-Clause
// Cuts an argument text into arguments, reads each one's size prefix, and hands the operand to the dialect's grammar.
#include "parsers/args.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "parsers/operand.hpp"

namespace usdt::parsers {
namespace {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::size_t skip_space(std::string_view text, std::size_t at) {
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}

/// Limit of one site's arguments; sys/sdt.h writes at most 12, and a spec holds 255. A parsed argument takes some 200
/// bytes, its text in a hostile file two.
constexpr std::size_t kMostArguments = 1024;

/// The size prefix of an argument: `N@`, `-N@`, `Nf@`. sys/sdt.h writes no other form.
struct Prefix {
  std::size_t length = 0;  ///< 0: there is none
  bool is_signed = false;
  bool is_float = false;
  std::string_view digits;
};

Prefix prefix_of(std::string_view text) {
  Prefix prefix;
  prefix.is_signed = text.starts_with('-');
  std::size_t at = prefix.is_signed;
  while (at < text.size() && is_digit(text[at])) ++at;
  prefix.digits = text.substr(prefix.is_signed, at - prefix.is_signed);
  if (prefix.digits.empty()) return {};
  prefix.is_float = text.substr(at).starts_with('f');
  at += prefix.is_float;
  if (!text.substr(at).starts_with('@')) return {};
  prefix.length = at + 1;
  return prefix;
}

/// The characters that can say anything about where an argument ends. Most cannot, and the cutting loop sees them all.
constexpr auto kStructural = [] {
  std::array<bool, 256> table{};
  for (const char special : {'(', ')', '[', ']', '"', '\\', ' ', '\t', '\n', '\v', '\f', '\r'}) {
    table[static_cast<unsigned char>(special)] = true;
  }
  return table;
}();

/// The brackets and quotes that are open at one place of an argument.
struct Nesting {
  std::size_t depth = 0;
  bool quoted = false;

  [[nodiscard]] bool open() const { return quoted || depth > 0; }
  void step(char c) {
    if (c == '"') quoted = !quoted;
    if (quoted) return;
    if (c == '(' || c == '[') ++depth;
    if ((c == ')' || c == ']') && depth > 0) --depth;
  }
};

/// Returns where the argument that starts at `at` ends. White space inside brackets or quotes belongs to it, unless a
/// size prefix follows: then a bracket was left open, and the next argument must not pay for it.
std::size_t end_of_argument(std::string_view text, std::size_t at, OuterComma outer_comma) {
  Nesting nesting;
  while (at < text.size()) {
    const char c = text[at];
    if (!kStructural[static_cast<unsigned char>(c)]) {
      ++at;
    } else if (!is_space(c)) {
      const bool escape = c == '\\' && nesting.quoted && at + 1 < text.size() && !is_space(text[at + 1]);
      nesting.step(c);
      at += escape ? 2 : 1;
    } else {
      const std::size_t next = skip_space(text, at);
      if (next == text.size() || prefix_of(text.substr(next)).length > 0) return at;
      const bool comma = outer_comma == OuterComma::yes && (text[at - 1] == ',' || text[next] == ',');
      if (!nesting.open() && !comma) return at;
      at = next;
    }
  }
  return at;
}

std::string explain(const Trouble& trouble, std::string_view operand) {
  if (!trouble.reason.empty()) return std::string(trouble.reason);
  if (operand.empty()) return "missing operand";
  if (trouble.at == operand.data() + operand.size()) return "unexpected end of operand";
  const auto byte = static_cast<unsigned char>(*trouble.at);
  if (byte >= 0x20 && byte < 0x7f) return fmt::format("unexpected '{}' in operand", *trouble.at);
  return fmt::format("unexpected byte 0x{:02x} in operand", byte);
}

/// Fills `arg` from the size digits; false where no argument can have that size.
bool read_size(const Prefix& prefix, ParsedArg& arg) {
  std::uint32_t size = 0;
  const auto [end, error] = std::from_chars(prefix.digits.data(), prefix.digits.data() + prefix.digits.size(), size);
  if (error != std::errc{}) {
    arg.unreadable = Unreadable{fmt::format("argument size {} is too large", prefix.digits), arg.column};
    return false;
  }
  arg.size = size;
  if (size == 0) arg.unreadable = Unreadable{"argument size is 0", arg.column};
  return size > 0;
}

void parse_one(std::string_view text, OperandParser parse, ParsedArg& arg) {
  arg.text = text;
  const Prefix prefix = prefix_of(text);
  arg.is_signed = prefix.is_signed;
  arg.is_float = prefix.is_float;
  if (prefix.length > 0 && !read_size(prefix, arg)) return;
  const std::string_view operand = text.substr(prefix.length);
  Trouble trouble;
  if (parse(operand, arg.operand, trouble)) return;
  arg.operand = std::monostate{};
  const auto column = static_cast<std::uint32_t>(trouble.at - text.data());
  arg.unreadable = Unreadable{explain(trouble, operand), arg.column + column};
}

}  // namespace

std::vector<ParsedArg> parse_each(std::string_view text, OuterComma outer_comma, OperandParser parse) {
  std::vector<ParsedArg> args;
  std::size_t at = skip_space(text, 0);
  if (at == text.size() || text[at] == ':') return args;
  // Twelve is the most sys/sdt.h can write; more is possible, so this is only where growth starts.
  args.reserve(std::clamp<std::size_t>(std::count(text.begin(), text.end(), '@'), 1, 12));
  while (at < text.size()) {
    ParsedArg& arg = args.emplace_back();
    arg.column = static_cast<std::uint32_t>(at);
    if (args.size() > kMostArguments) {
      arg.text = text.substr(at);
      arg.unreadable =
          Unreadable{fmt::format("more than {} arguments: the rest is not read", kMostArguments), arg.column};
      return args;
    }
    const std::size_t end = end_of_argument(text, at, outer_comma);
    parse_one(text.substr(at, end - at), parse, arg);
    at = skip_space(text, end);
  }
  return args;
}

std::string lower_case(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::vector<ParsedArg> parse_args(std::string_view text, Machine machine) {
  switch (machine) {
    case Machine::x86_64:
    case Machine::i386:
      return parse_x86_att(text);
    case Machine::aarch64:
      return parse_aarch64(text);
    case Machine::riscv64:
      break;
  }
  return parse_riscv64(text);
}

}  // namespace usdt::parsers
