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

/// "arg3" as the number it is.
ArgName named(std::string_view text) {
  auto path = parse_value_path(text);
  return path && path->steps.empty() ? path->root : ArgName(std::string(text));
}

}  // namespace

std::optional<std::size_t> find_arg(const std::vector<Arg>& args, const ArgName& name) {
  const auto end = std::ranges::find(args, true, &Arg::of_end);
  if (end == args.end()) return find_between(args, 0, args.size(), name);
  const auto first_of_end = static_cast<std::size_t>(end - args.begin());
  const auto* text = std::get_if<std::string>(&name);
  const bool prefixed = text != nullptr && text->starts_with(plan::kEndPrefix);
  const ArgName own =
      text != nullptr ? named(std::string_view(*text).substr(prefixed ? plan::kEndPrefix.size() : 0)) : name;
  const auto found = prefixed ? std::nullopt : find_between(args, 0, first_of_end, own);
  return found ? found : find_between(args, first_of_end, args.size(), own);
}

}  // namespace v1

namespace plan {

std::optional<std::size_t> find_value(const std::vector<Arg>& args, const ValuePath& path) {
  if (path.steps.empty()) return find_arg(args, path.root);
  const auto is_it = [&](const Arg& arg) {
    return arg.of_end ? arg.name() == path.text || own_name(arg) == path.text : arg.derived && arg.name() == path.text;
  };
  if (const auto found = std::ranges::find_if(args, is_it); found != args.end())
    return static_cast<std::size_t>(found - args.begin());
  return path.text.starts_with(kEndPrefix) ? find_arg(args, path.text) : std::nullopt;
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
