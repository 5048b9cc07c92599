// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/type.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "resolve/value_size.hpp"
#include "usdt/arg.hpp"

namespace usdt {
inline namespace v1 {

std::string type_name(const Type& type) {
  const std::uint64_t bits = 8 * static_cast<std::uint64_t>(type.size);
  if (type.is_float()) return fmt::format("{}{}", type.size == 4 || type.size == 8 ? 'f' : '?', bits);
  if (!resolve::is_value_size(type.size)) return fmt::format("?{}", bits);
  return fmt::format("{}{}", type.is_signed ? 'i' : 'u', bits);
}

std::string_view label_of(const std::vector<Arg>& args, std::size_t n) noexcept {
  std::string_view name = args[n].name();
  if (!args[n].part_of) return name;
  const Arg& holder = args[*args[n].part_of];
  const std::string_view whole = holder.result && holder.name().empty() ? "retval" : holder.name();
  // The name of a whole that begins with an operator is in parentheses there.
  const bool parenthesised = name.starts_with('(') && name.substr(1).starts_with(whole);
  const std::size_t start = parenthesised ? whole.size() + 2 : whole.size();
  name.remove_prefix(std::min(start, name.size()));
  if (name.starts_with('.') && !name.starts_with("...")) name.remove_prefix(1);
  return name;
}

std::string_view enumerator_name(const Arg& arg, std::uint64_t bits) noexcept {
  if (!arg.declaration) return {};
  const std::vector<Enumerator>& all = arg.declaration->enumerators;
  const unsigned spare = arg.type.size == 0 || arg.type.size > 8 ? 0 : 64 - 8 * arg.type.size;
  const auto found =
      std::ranges::find_if(all, [&](const Enumerator& each) { return each.bits << spare == bits << spare; });
  return found == all.end() ? std::string_view() : std::string_view(found->name);
}

}  // namespace v1
}  // namespace usdt
