// SPDX-License-Identifier: BSD-2-Clause
// Descriptions of providers (docs/provider-note.md) made declarations of arguments. What does not fit the stapsdt note
// is left out: a wrong name is worse than none.
#include "resolve/describe.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "parsers/declared.hpp"

namespace usdt {
inline namespace v1 {
namespace {

/// The numbers are those of enum usdtp_type in <usdt/probe.h>.
enum Code : std::uint8_t { kText = 23, kBytes = 24, kLength = 25, kEnum = 64 };

struct CType {
  std::string_view text;
  TypeKind kind = TypeKind::integer;
  std::uint8_t size = 0;  ///< bytes; 0: that of a pointer, kAny: more than one is possible
};
constexpr std::uint8_t kAny = 255;

constexpr std::array kTypes{
    CType{},
    CType{"bool", TypeKind::boolean, 1},
    CType{"char", TypeKind::integer, 1},
    CType{"signed char", TypeKind::integer, 1},
    CType{"unsigned char", TypeKind::integer, 1},
    CType{"short", TypeKind::integer, 2},
    CType{"unsigned short", TypeKind::integer, 2},
    CType{"int", TypeKind::integer, 4},
    CType{"unsigned int", TypeKind::integer, 4},
    CType{"long", TypeKind::integer, kAny},
    CType{"unsigned long", TypeKind::integer, kAny},
    CType{"long long", TypeKind::integer, 8},
    CType{"unsigned long long", TypeKind::integer, 8},
    CType{"float", TypeKind::floating, 4},
    CType{"double", TypeKind::floating, 8},
    CType{"char8_t", TypeKind::integer, 1},
    CType{"char16_t", TypeKind::integer, 2},
    CType{"char32_t", TypeKind::integer, 4},
    CType{"wchar_t", TypeKind::integer, kAny},
    CType{"void *", TypeKind::pointer},
    CType{"const void *", TypeKind::pointer},
    CType{"char *", TypeKind::text},
    CType{"const char *", TypeKind::text},
    CType{"const char *", TypeKind::text},
    CType{"const void *", TypeKind::pointer},
    CType{"size_t", TypeKind::integer, kAny},
};

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Returns the name of an expression: "rows" for `request->rows`, `db.rows()`, `&rows`; nothing where it is no chain of
/// members.
std::string_view name_in(std::string_view expression) {
  if (expression.starts_with('&') || expression.starts_with('*')) expression.remove_prefix(1);
  if (expression.ends_with("()")) expression.remove_suffix(2);
  const auto is_of_chain = [](char c) { return is_word_character(c) || c == '.' || c == '>' || c == '-' || c == ':'; };
  if (!std::ranges::all_of(expression, is_of_chain)) return {};
  const auto before = expression.find_last_of(".>:-");
  const std::string_view last = before == expression.npos ? expression : expression.substr(before + 1);
  const bool member = before == expression.npos || expression[before] != '-';  // and not a difference
  return member && parsers::is_identifier(last) ? last : std::string_view();
}

std::uint8_t code_of(const SiteDescription& description, std::size_t n) {
  return n < description.types.size() ? static_cast<std::uint8_t>(description.types[n]) : std::uint8_t{0};
}

/// The types are of `count` arguments: as many have one.
bool types_fit(const SiteDescription& description, std::size_t count) {
  if (description.types.size() < count) return false;
  for (std::size_t n = 0; n < description.types.size(); ++n)
    if ((code_of(description, n) != 0) != (n < count)) return false;
  return true;
}

/// Items by argument. What is written as one and passed as two, a text or bytes with their length, has one item.
std::vector<Declaration> items_of(const SiteDescription& description, std::size_t count, bool typed) {
  const bool declared = !description.declared.empty();
  const std::vector<std::string_view> parts =
      parsers::split_items(declared ? description.declared : description.written);
  std::vector<Declaration> items;
  std::size_t next = 0;
  for (std::size_t n = 0; n < count; ++n) {
    Declaration& item = items.emplace_back();
    if (typed && code_of(description, n) == kLength) continue;
    if (next == parts.size()) return {};
    if (declared)
      item = parsers::read_declared(parts[next++]);
    else
      item.name = name_in(parts[next++]);
  }
  return next == parts.size() ? items : std::vector<Declaration>();
}

bool is_word(const Type& noted) { return !noted.is_signed && (noted.size == 4 || noted.size == 8); }

bool fits(const CType& type, const Type& noted) {
  if (type.text.empty() || noted.is_float()) return type.kind == TypeKind::floating && type.size == noted.size;
  if (type.size == kAny) return true;
  return type.size == 0 ? is_word(noted) : noted.size == type.size;
}

struct Described {
  bool typed;
  std::vector<Declaration> items;  ///< empty: no names
};

Described read(const SiteDescription& description, std::size_t count) {
  const bool typed = types_fit(description, count);
  return {typed, items_of(description, count, typed)};
}

void set_type(Arg& arg, std::uint8_t code, Declaration& declaration) {
  const bool enumeration = (code & kEnum) != 0;
  const std::size_t plain = code & ~kEnum;
  if (plain >= kTypes.size() || !fits(kTypes[plain], arg.type)) return;
  declaration.type = enumeration ? "enum" : kTypes[plain].text;
  if (!enumeration) arg.type.kind = kTypes[plain].kind;
}

}  // namespace

void describe(std::vector<Arg>& args, const SiteDescription& description) {
  const auto [typed, items] = read(description, args.size());
  for (std::size_t n = 0; n < args.size(); ++n) {
    Declaration declaration = items.empty() ? Declaration() : items[n];
    if (typed) set_type(args[n], code_of(description, n), declaration);
    if (!items.empty()) {
      parsers::set_meaning(args[n].type, declaration);
      if (typed && n > 0 && code_of(description, n) == kLength && !items[n - 1].name.empty())
        declaration.name = items[n - 1].name + "_size";
    }
    // Two of one name: nobody could say which is meant.
    for (std::size_t other = 0; other < n; ++other)
      if (!declaration.name.empty() && args[other].name() == declaration.name) declaration.name.clear();
    if (declaration != Declaration{}) args[n].declaration = std::make_shared<const Declaration>(std::move(declaration));
  }
}

Result<void> check_declaration(std::string_view declared) {
  const std::vector<std::string_view> items = parsers::split_items(declared);
  if (items.empty()) return fail(ErrorKind::invalid_argument, "no argument is declared");
  for (const std::string_view each : items)
    if (auto item = parsers::parse_declared(each); !item) return fail(std::move(item.error()));
  return {};
}

}  // namespace v1
}  // namespace usdt

namespace usdt::resolve {

std::size_t declared_count(std::string_view declared) { return parsers::split_items(declared).size(); }

std::vector<TextAndLength> described_lengths(const SiteDescription& description, std::size_t count) {
  const auto [typed, items] = read(description, count);
  std::vector<TextAndLength> found;
  constexpr std::size_t kMost = 64;  // more than any site has, and than captures can name
  for (std::size_t n = 0; n + 1 < std::min(count, kMost); ++n) {
    const bool view = typed && code_of(description, n) == kText && code_of(description, n + 1) == kLength;
    if (view || (!items.empty() && items[n].meaning == "text"))
      found.push_back({static_cast<std::uint8_t>(n), static_cast<std::uint8_t>(n + 1)});
  }
  return found;
}

}  // namespace usdt::resolve
