// SPDX-License-Identifier: BSD-2-Clause
// What an object holds only at times, of which a number in it tells: variants of Rust's enums, std::optional. The
// number is read with it, and whoever shows values compares.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "resolve/follow.hpp"

namespace usdt::resolve {
namespace {

/// An object that is there, or not.
struct KnownOptional {
  std::string_view type;  ///< its name begins so
  std::string_view value;
  std::string_view there;  ///< a bool
};
/// libstdc++ and libc++.
constexpr std::array kKnownOptionals{
    KnownOptional{"std::optional<", "_M_payload._M_payload._M_value", "_M_payload._M_engaged"},
    KnownOptional{"std::__1::optional<", "__val_", "__engaged_"},
};

/// "std::optional<int>" of "const std::optional<int>".
std::string_view unqualified(std::string_view text) {
  for (const std::string_view word : {"const ", "volatile ", "const "})
    if (text.starts_with(word)) text.remove_prefix(word.size());
  return text;
}

}  // namespace

std::shared_ptr<const Follower::Alternative> Follower::alternative_by(const Object& object, const Object& discriminant,
                                                                      AlternativeValues values,
                                                                      std::string reason) const {
  const auto type = info(discriminant.type);
  const std::uint32_t size = type ? type->type.size : 0;
  return std::make_shared<const Alternative>(Alternative{.discriminant = number_of(discriminant, size),
                                                         .type = {.size = size},
                                                         .name = fmt::format("what {} is", object.text),
                                                         .values = std::move(values),
                                                         .reason = std::move(reason),
                                                         .result = object.result,
                                                         .needs = object.needs,
                                                         .within = object.within,
                                                         .outer = object.alternative});
}

std::shared_ptr<const Follower::Alternative> Follower::alternative_in(const Object& object,
                                                                      const MemberInfo& member) const {
  if (!member.variant) return object.alternative;
  Object discriminant = object;
  discriminant.place = moved(std::move(discriminant.place), member.variant->offset);
  discriminant.type = {member.variant->type};
  discriminant.range = {};
  return alternative_by(object, discriminant, member.variant->values,
                        fmt::format("{} is not {}", object.text, member.name.empty() ? "this variant" : member.name));
}

Result<void> Follower::place_in_whole(const Object& object, Arg& arg) {
  if (auto placed = place_in_list(object.within, arg); !placed) return placed;
  return place_in_alternative(object.alternative, arg);
}

Result<void> Follower::place_in_alternative(const std::shared_ptr<const Alternative>& alternative, Arg& arg) {
  if (!alternative) return {};
  auto position = read_of_list(alternative->discriminant, alternative->name);
  if (!position) {
    Object object;
    object.text = alternative->name;
    object.result = alternative->result;
    object.needs = alternative->needs;
    object.within = alternative->within;
    object.alternative = alternative->outer;
    TypeInfo number;
    number.type = alternative->type;
    Arg discriminant = make(object, number, alternative->discriminant);
    discriminant.hidden = true;
    if (auto placed = place_in_whole(object, discriminant); !placed) return placed;
    auto appended = append(std::move(discriminant));
    if (!appended) return fail(std::move(appended.error()));
    position = static_cast<std::uint8_t>(*appended);
  }
  arg.alternative =
      std::make_shared<const AlternativeOf>(AlternativeOf{*position, alternative->values, alternative->reason});
  return {};
}

/// Shows what a known type holds at times; false: `object` is none.
Result<bool> Follower::show_known_alternatives(const Object& object, const TypeInfo& type, unsigned depth,
                                               std::optional<std::size_t> at, std::optional<std::uint8_t> part_of) {
  if (type.type.kind != TypeKind::structure) return false;
  for (const KnownOptional& known : kKnownOptionals) {
    if (!unqualified(type.text).starts_with(known.type)) continue;
    auto value = object_within(object, known.value);
    const auto there = object_within(object, known.there);
    const auto flag = there ? info(there->type) : Result<TypeInfo>(TypeInfo{});
    if (!value || !flag || flag->type.kind != TypeKind::boolean) continue;
    Arg holder = make(object, type, Number{Unreadable{fmt::format("struct of {} bytes", type.type.size)}});
    holder.part_of = part_of;
    if (auto placed = place_in_whole(object, holder); !placed) return fail(std::move(placed.error()));
    std::size_t where = 0;
    if (auto stored = put(std::move(holder), at, where); !stored) return fail(std::move(stored.error()));
    value->alternative = alternative_by(object, *there, {.ranges = {{1, 1}}}, fmt::format("{} is empty", object.text));
    value->text = object.followed_by(".value");
    value->is_sum = false;
    auto shown = show(*std::move(value), depth, std::nullopt, static_cast<std::uint8_t>(where));
    return shown ? Result<bool>(true) : fail(std::move(shown.error()));
  }
  return false;
}

}  // namespace usdt::resolve
