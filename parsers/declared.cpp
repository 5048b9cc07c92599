// SPDX-License-Identifier: BSD-2-Clause
#include "parsers/declared.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "base/try.hpp"

namespace usdt::parsers {
namespace {

/// Names that are believed of one argument's numbers, as of one enum.
constexpr std::size_t kMostNumbers = 4096;

/// The parts of an item, as they are written.
struct Item {
  std::string_view name;
  std::string_view meaning;
  std::string_view unit;
};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

Item split_item(std::string_view text) {
  Item item;
  text = trimmed(text);
  if (const auto bracket = text.find('['); bracket != text.npos && text.ends_with(']')) {
    item.unit = trimmed(text.substr(bracket + 1, text.size() - bracket - 2));
    text = trimmed(text.substr(0, bracket));
  }
  if (const auto colon = text.find(':'); colon != text.npos) {
    item.meaning = trimmed(text.substr(colon + 1));
    text = trimmed(text.substr(0, colon));
  }
  item.name = text;
  return item;
}

/// "16", "0x10", "-1"
std::optional<std::uint64_t> parse_number(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, hexadecimal ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return negative ? 0 - number : number;
}

/// Reads "0=idle, 1=busy".
Result<std::vector<Enumerator>> parse_numbers(std::string_view text) {
  std::vector<Enumerator> numbers;
  std::set<std::uint64_t> known;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view each = trimmed(text.substr(at, comma - at));
    at = comma + 1;
    const std::size_t equals = std::min(each.find('='), each.size());
    const auto number = parse_number(trimmed(each.substr(0, equals)));
    const std::string_view name = equals == each.size() ? std::string_view() : trimmed(each.substr(equals + 1));
    if (!number || name.empty()) return fail(ErrorKind::invalid_argument, fmt::format("'{}' is not NUMBER=NAME", each));
    if (!known.insert(*number).second)
      return fail(ErrorKind::invalid_argument, fmt::format("'{}' names a number a second time", each));
    if (numbers.size() == kMostNumbers)
      return fail(ErrorKind::limit, fmt::format("more than {} names of numbers", kMostNumbers));
    numbers.push_back({std::string(name), *number});
  }
  return numbers;
}

/// Whether a meaning is a list of the names that numbers have.
bool is_list(std::string_view meaning) { return meaning.starts_with('{') && meaning.ends_with('}'); }
std::string_view within(std::string_view braces) { return braces.substr(1, braces.size() - 2); }

}  // namespace

std::vector<std::string_view> split_items(std::string_view text) {
  std::vector<std::string_view> parts;
  if (trimmed(text).empty()) return parts;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      for (++i; i < text.size() && text[i] != c; ++i) i += text[i] == '\\';
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      parts.push_back(trimmed(text.substr(start, i - start)));
      start = i + 1;
    }
  }
  parts.push_back(trimmed(text.substr(start)));
  return parts;
}

bool is_identifier(std::string_view text) {
  return !text.empty() && !(text[0] >= '0' && text[0] <= '9') && std::ranges::all_of(text, is_word_character);
}

std::size_t declared_length(std::string_view text) noexcept {
  std::size_t depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == ',' && depth == 0) return at;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && depth > 0) --depth;
  }
  return text.size();
}

Result<Declaration> parse_declared(std::string_view text) {
  const auto wrong = [&](ErrorKind kind, std::string_view why) {
    return fail(kind, fmt::format("'{}': {}", text, why));
  };
  const Item item = split_item(text);
  if (!is_identifier(item.name)) return wrong(ErrorKind::invalid_argument, fmt::format("'{}' is no name", item.name));
  if (item.meaning.find_first_of("{}") != item.meaning.npos && !is_list(item.meaning))
    return wrong(ErrorKind::invalid_argument, "names of numbers are written {NUMBER=NAME, NUMBER=NAME}");
  if (is_list(item.meaning))
    if (const auto numbers = parse_numbers(within(item.meaning)); !numbers)
      return wrong(numbers.error().kind, numbers.error().message);
  return read_declared(text);
}

Declaration read_declared(std::string_view text) {
  const Item item = split_item(text);
  Declaration declaration;
  if (is_identifier(item.name)) declaration.name = item.name;
  declaration.unit = item.unit;
  if (!is_list(item.meaning)) {
    declaration.meaning = item.meaning;
  } else if (auto numbers = parse_numbers(within(item.meaning))) {
    declaration.enumerators = std::move(*numbers);
  }
  return declaration;
}

std::string declared_text(const Declaration& declaration) {
  std::string numbers;
  for (const Enumerator& each : declaration.enumerators)
    numbers += fmt::format("{}{}={}", numbers.empty() ? "" : ", ", static_cast<std::int64_t>(each.bits), each.name);
  std::string text = declaration.name;
  if (!numbers.empty()) text += fmt::format(":{{{}}}", numbers);
  if (!declaration.meaning.empty()) text += ":" + declaration.meaning;
  if (!declaration.unit.empty()) text += fmt::format("[{}]", declaration.unit);
  return text;
}

Result<std::shared_ptr<const Declaration>> parse_called(std::string_view item) {
  auto called = TRY(parse_declared(item));
  if (called.meaning == "string" || called.meaning == "text")
    return fail(ErrorKind::invalid_argument,
                fmt::format("'{}': a text is asked for by str(POINTER) or str(POINTER, LENGTH)", trimmed(item)));
  return std::make_shared<const Declaration>(std::move(called));
}

bool has_meaning(const Declaration& declaration) noexcept {
  return !declaration.meaning.empty() || !declaration.unit.empty() || !declaration.enumerators.empty();
}

void set_meaning(Type& type, Declaration& declaration) {
  if (type.is_float()) declaration.enumerators.clear();
  if (!declaration.enumerators.empty()) {
    type.kind = TypeKind::enumeration;
    if (declaration.type.empty()) declaration.type = "enum";
  }
  const std::string_view meaning = declaration.meaning;
  const bool is_word = !type.is_signed && (type.size == 4 || type.size == 8) && !type.is_float();
  if ((meaning == "string" || meaning == "text") && is_word) type.kind = TypeKind::text;
  if (meaning == "bool" && !type.is_float()) type.kind = TypeKind::boolean;
}

}  // namespace usdt::parsers
