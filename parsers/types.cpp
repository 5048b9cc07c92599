// SPDX-License-Identifier: BSD-2-Clause
// Types of arguments as people type them: "i32, str, f64".
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/near_text.hpp"
#include "usdt/pattern.hpp"

namespace usdt {
inline namespace v1 {
namespace {

struct NamedType {
  std::string_view name;
  Type type;
};

/// The size of a pointer is the machine's.
constexpr std::array kTypes = {
    NamedType{"i8", {1, true, TypeKind::integer}},    NamedType{"i16", {2, true, TypeKind::integer}},
    NamedType{"i32", {4, true, TypeKind::integer}},   NamedType{"i64", {8, true, TypeKind::integer}},
    NamedType{"u8", {1, false, TypeKind::integer}},   NamedType{"u16", {2, false, TypeKind::integer}},
    NamedType{"u32", {4, false, TypeKind::integer}},  NamedType{"u64", {8, false, TypeKind::integer}},
    NamedType{"f32", {4, false, TypeKind::floating}}, NamedType{"f64", {8, false, TypeKind::floating}},
    NamedType{"bool", {1, false, TypeKind::boolean}}, NamedType{"ptr", {0, false, TypeKind::pointer}},
    NamedType{"str", {0, false, TypeKind::text}},
};

Error no_type(std::string_view name, std::size_t column) {
  NearTexts near(name);
  for (const NamedType& each : kTypes) near.offer(each.name);
  std::string message = name.empty()
                            ? std::string("a type is missing")
                            : fmt::format("'{}' is no type of an argument{}", name, std::move(near).question());
  return {ErrorKind::syntax, message + "; types are i8 to i64, u8 to u64, f32, f64, bool, ptr and str", 0,
          static_cast<std::uint32_t>(column)};
}

}  // namespace

Result<std::vector<Type>> parse_types(std::string_view text) {
  constexpr std::size_t most = 64;
  std::vector<Type> types;
  for (std::size_t at = 0; at <= text.size() && types.size() < most;) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    std::size_t first = at;
    std::size_t last = comma;
    while (first < last && text[first] == ' ') ++first;
    while (last > first && text[last - 1] == ' ') --last;
    const std::string_view name = text.substr(first, last - first);
    const auto* known =
        std::find_if(kTypes.begin(), kTypes.end(), [&](const NamedType& each) { return each.name == name; });
    if (known == kTypes.end()) return fail(no_type(name, first));
    types.push_back(known->type);
    at = comma + 1;
  }
  return types;
}

}  // namespace v1
}  // namespace usdt
