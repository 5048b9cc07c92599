// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/signature.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace usdt {
inline namespace v1 {
namespace {

/// Returns the place of the name in a type: behind the "(*" or "(&" of pointers and references to functions and arrays,
/// else at its end.
std::size_t place_of_name(std::string_view type) {
  for (std::size_t at = type.find('('); at != type.npos; at = type.find('(', at + 1)) {
    const std::size_t end = type.find_first_not_of("*&", at + 1);
    const std::string_view before = type.substr(0, at);
    const bool in_template = std::ranges::count(before, '<') != std::ranges::count(before, '>');
    if (!in_template && end != type.npos && end > at + 1 && type[end] == ')') return end;
  }
  return type.size();
}

}  // namespace

std::string c_type_text(const Arg& arg) {
  return arg.c_type().empty() ? type_name(arg.type) : std::string(arg.c_type());
}

std::string declaration_text(std::string type, std::string_view name) {
  if (name.empty()) return type;
  const std::size_t at = place_of_name(type);
  const bool touches = at < type.size() || type.ends_with('*') || type.ends_with('&');
  return type.insert(at, fmt::format("{}{}", touches ? "" : " ", name));
}

std::string declaration_text(const Arg& arg) { return declaration_text(c_type_text(arg), arg.name()); }

std::string signature_text(const std::vector<Arg>& args) {
  std::string out = "(";
  for (const Arg& arg : args) out.append(out.size() > 1 ? ", " : "").append(declaration_text(arg));
  return out + ")";
}

}  // namespace v1
}  // namespace usdt
