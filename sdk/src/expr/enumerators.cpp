// SPDX-License-Identifier: BSD-2-Clause
#include "expr/enumerators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/near_text.hpp"

namespace usdt::expr {
namespace {

constexpr std::size_t kShown = 8;
constexpr std::string_view kScope = "::";

/// "net::State" and "BUSY" of "net::State::BUSY".
std::pair<std::string_view, std::string_view> split(std::string_view name) {
  const std::size_t at = name.rfind(kScope);
  if (at == name.npos) return {{}, name};
  return {name.substr(0, at), name.substr(at + kScope.size())};
}

std::string_view without_keywords(std::string_view type) {
  for (const std::string_view word : {"const ", "volatile ", "enum class ", "enum "})
    if (type.starts_with(word)) type.remove_prefix(word.size());
  return type;
}

/// Whether `name` is `whole`, or what is behind some scopes of it.
bool is_end_of(std::string_view name, std::string_view whole) {
  if (!whole.ends_with(name)) return false;
  whole.remove_suffix(name.size());
  return whole.empty() || whole.ends_with(kScope);
}

}  // namespace

bool names_enumerator(std::string_view written, std::string_view type, std::string_view enumerator) {
  const auto [scope, name] = split(written);
  if (name != enumerator) return false;
  const std::string_view own = without_keywords(type);
  const std::string_view around = split(own).first;
  return scope.empty() || is_end_of(scope, own) || (!around.empty() && is_end_of(scope, around));
}

std::string near_enumerators(std::string_view written, const std::vector<Enumerator>& all) {
  NearTexts near(split(written).second);
  for (const Enumerator& each : all) near.offer(each.name);
  if (std::string question = std::move(near).question(); !question.empty()) return question;
  std::string names;
  const std::size_t shown = std::min(all.size(), kShown);
  for (std::size_t n = 0; n < shown; ++n) names += fmt::format("{}{}", n > 0 ? ", " : "", all[n].name);
  if (all.size() > shown) names += fmt::format(" and {} more", all.size() - shown);
  return "; it has " + names;
}

}  // namespace usdt::expr
