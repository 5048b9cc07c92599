// SPDX-License-Identifier: BSD-2-Clause
#include "resolve/object.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/try.hpp"

namespace usdt::resolve {
namespace {

/// The alternative that a member of `object` is; null: it is there at all times that the object is.
std::shared_ptr<const Alternative> alternative_in(const ObjectTypes& types, const Object& object,
                                                  const MemberInfo& member) {
  if (!member.variant) return object.alternative;
  Object discriminant = object;
  discriminant.place = moved(std::move(discriminant.place), member.variant->offset);
  discriminant.type = {member.variant->type};
  discriminant.range = {};
  return alternative_by(types, object, discriminant, member.variant->values,
                        fmt::format("{} is not {}", object.text, member.name.empty() ? "this variant" : member.name));
}

}  // namespace

Number number_of(const ObjectTypes& types, const Object& object, std::uint32_t size) {
  const auto type = types.info(object.type);
  if (type && !type->no_number.empty()) return {Unreadable{.reason = type->no_number}};
  BitRange range = object.range;
  range.swapped = type && type->swapped;
  return number_at(object.place, size, range, object.text, types.arch());
}

Object dereferenced(const ObjectTypes& types, Object object, const TypeRef& target) {
  BehindPointer place{number_of(types, object, types.arch().word_size), 0, object.text};
  object.place = std::move(place);
  object.type = target;
  object.range = {};
  return object;
}

Result<Object> without_reference(const ObjectTypes& types, Object object) {
  const auto type = TRY(types.info(object.type));
  return type.reference ? dereferenced(types, std::move(object), {type.target}) : std::move(object);
}

Object member_of(const ObjectTypes& types, Object object, const MemberInfo& member) {
  object.alternative = alternative_in(types, object, member);
  object.place = moved(std::move(object.place), member.offset);
  object.type = {member.type};
  object.range = {member.shift, member.bits};
  return object;
}

std::optional<Object> object_within(const ObjectTypes& types, const Object& object, std::string_view members) {
  Object inner = object;
  while (!members.empty()) {
    const std::size_t dot = std::min(members.find('.'), members.size());
    const auto info = types.info(inner.type);
    if (!info || info->type.kind != TypeKind::structure || inner.type.pointers > 0) return std::nullopt;
    const auto found = types.find_member(inner.type.id, members.substr(0, dot));
    if (!found || !*found || (*found)->is_virtual || (*found)->variant) return std::nullopt;
    inner = member_of(types, std::move(inner), **found);
    members.remove_prefix(std::min(dot + 1, members.size()));
  }
  return inner;
}

std::shared_ptr<const Alternative> alternative_by(const ObjectTypes& types, const Object& object,
                                                  const Object& discriminant, AlternativeValues values,
                                                  std::string reason) {
  const auto type = types.info(discriminant.type);
  const std::uint32_t size = type ? type->type.size : 0;
  return std::make_shared<const Alternative>(Alternative{.discriminant = number_of(types, discriminant, size),
                                                         .type = {.size = size},
                                                         .name = fmt::format("what {} is", object.text),
                                                         .values = std::move(values),
                                                         .reason = std::move(reason),
                                                         .result = object.result,
                                                         .needs = object.needs,
                                                         .within = object.within,
                                                         .outer = object.alternative});
}

}  // namespace usdt::resolve
