// SPDX-License-Identifier: BSD-2-Clause
#include "plan/find_value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "expr/near_names.hpp"
#include "usdt/plan.hpp"

namespace usdt {
inline namespace v1 {
namespace {

/// Returns the name of an argument at its own site.
std::string_view own_name(const Arg& arg) {
  std::string_view name = arg.name();
  if (arg.of_end) name.remove_prefix(std::min(plan::kEndPrefix.size(), name.size()));
  return name;
}

/// A place in the list of a span that its beginning does not fill.
bool is_empty_place(const Arg& arg) { return arg.hidden && arg.type.size == 0; }

std::optional<std::size_t> find_between(const std::vector<Arg>& args, std::size_t begin, std::size_t end,
                                        const ArgName& name) {
  const auto* number = std::get_if<std::uint8_t>(&name);
  std::optional<std::size_t> found;
  for (std::size_t n = begin; n < end; ++n) {
    if (args[n].result && !args[n].derived) {
      if (!number && std::get<std::string>(name) == "retval") return n;
    } else if (number ? begin + *number == n && !is_empty_place(args[n])
                      : own_name(args[n]) == std::get<std::string>(name)) {
      found = n;
    }
  }
  return found;
}

/// "arg3" as the number it is, a way to a member as its text.
ArgName name_of(const ValuePath& path) { return path.steps.empty() ? path.root : ArgName(path.text); }

}  // namespace

std::optional<std::size_t> find_arg(const std::vector<Arg>& args, const ArgName& name) {
  const auto end = std::ranges::find(args, true, &Arg::of_end);
  if (end == args.end()) return find_between(args, 0, args.size(), name);
  const auto first_of_end = static_cast<std::size_t>(end - args.begin());
  const auto* text = std::get_if<std::string>(&name);
  auto path = text != nullptr ? parse_value_path(*text) : fail(ErrorKind::not_found, "");
  const auto at_end = path ? plan::own_path_of_end(*path) : std::nullopt;
  const bool prefixed = at_end || (text != nullptr && text->starts_with(plan::kEndPrefix));
  const ArgName own = at_end     ? name_of(*at_end)
                      : path     ? name_of(*path)
                      : prefixed ? ArgName(text->substr(plan::kEndPrefix.size()))
                                 : name;
  const auto found = prefixed ? std::nullopt : find_between(args, 0, first_of_end, own);
  return found ? found : find_between(args, first_of_end, args.size(), own);
}

}  // namespace v1

namespace plan {

std::optional<ValuePath> own_path_of_end(const ValuePath& path) {
  if (!path.steps.empty() && path.steps.back().kind == PathStep::Kind::distance) {
    const auto own = [](std::string_view text) {
      const auto parsed = parse_value_path(text);
      return parsed ? own_path_of_end(*parsed) : std::nullopt;
    };
    auto end = own(std::string_view(path.text).substr(0, path.steps.back().column));
    const auto from = own(path.steps.back().name);
    return end && from ? std::optional(distance_between(std::move(*end), *from)) : std::nullopt;
  }
  const bool of_end = path.root == ArgName("end") && !path.steps.empty() &&
                      path.steps.front().kind == PathStep::Kind::member &&
                      path.steps.front().column <= path.text.size();
  const std::size_t at = of_end ? path.text.rfind("end", path.steps.front().column) : path.text.npos;
  if (at == path.text.npos) return std::nullopt;
  std::string own = path.text;
  own.erase(at, path.steps.front().column - at);
  auto parsed = parse_value_path(own);
  return parsed ? std::optional(std::move(*parsed)) : std::nullopt;
}

std::optional<std::size_t> find_value(const std::vector<Arg>& args, const ValuePath& path) {
  if (path.steps.empty()) return find_arg(args, path.root);
  const auto at_end = own_path_of_end(path);
  const std::string_view own = at_end ? at_end->text : path.text;
  const auto is_it = [&](const Arg& arg) {
    return arg.of_end ? arg.name() == path.text || own_name(arg) == own : arg.derived && arg.name() == path.text;
  };
  if (const auto found = std::ranges::find_if(args, is_it); found != args.end())
    return static_cast<std::size_t>(found - args.begin());
  return at_end || path.text.starts_with(kEndPrefix) ? find_arg(args, path.text) : std::nullopt;
}

bool may_be_enumerator(const ValuePath& path) {
  return path.steps.empty() && std::holds_alternative<std::string>(path.root) && path.root != ArgName("retval") &&
         !path.text.starts_with(kEndPrefix);
}

Result<TypedExpression> typed_over(const Expression& question, const std::vector<Arg>& args) {
  std::vector<std::size_t> places;
  for (const ValuePath& path : question.values) {
    auto place = find_value(args, path);
    if (!place && may_be_enumerator(path)) place = TypedExpression::kNoArgument;
    const bool argument = path.steps.empty() || path.text.starts_with(kEndPrefix);
    if (!place)
      return fail(
          ErrorKind::invalid_argument,
          fmt::format(
              "{}: {}", path.text,
              argument
                  ? "there is no such argument" + expr::near_names(path.text, args)
                  : "it is not among what was recorded: of members those are that --print names where --record does"));
    places.push_back(*place);
  }
  return TypedExpression::check(question, args, places);
}

}  // namespace plan
}  // namespace usdt
