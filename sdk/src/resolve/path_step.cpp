// SPDX-License-Identifier: BSD-2-Clause
#include "resolve/path_step.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/try.hpp"
#include "resolve/known_alternatives.hpp"
#include "resolve/known_lists.hpp"

namespace usdt::resolve {
namespace {

/// The index of an element as it was written.
std::int64_t index_of(const PathStep& step) noexcept { return static_cast<std::int64_t>(step.index); }

/// "const char" and "char const": qualifiers change nothing about what is read.
std::string_view without_qualifiers(std::string_view name) {
  for (const std::string_view word : {"const", "volatile", "const"}) {
    if (name.starts_with(word) && name.substr(word.size()).starts_with(' ')) name.remove_prefix(word.size() + 1);
    if (name.ends_with(word) && name.substr(0, name.size() - word.size()).ends_with(' '))
      name.remove_suffix(word.size() + 1);
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
  }
  return name;
}

/// "low" of a number of 16 bytes, "real" of a complex one.
Result<Object> take_part(Object object, const TypeInfo& type, const PathStep& step) {
  const auto part = std::ranges::find(type.parts, step.name, &NumberPart::name);
  if (part == type.parts.end())
    return refuse_step(fmt::format("{} has no part '{}'; it has {} and {}", type.text, step.name,
                                   type.parts.front().name, type.parts.back().name),
                       step);
  const BasicType* basic = basic_type_of(part->type);
  if (basic == nullptr || type.swapped)
    return refuse_step(fmt::format("'{}' of {} cannot be asked for by itself", step.name, type.text), step);
  object.text = object.followed_by("." + step.name);
  object.is_sum = false;
  object.place = moved(std::move(object.place), part->offset);
  object.type = {.basic = basic};
  object.range = {};
  return object;
}

Result<Object> take_list_element(const ObjectTypes& types, const Object& object, const List& list,
                                 const PathStep& step) {
  if (step.kind == PathStep::Kind::dereference)
    return refuse_step(fmt::format("{} is no pointer but a list: write {}[0]", object.text, object.text), step);
  if (step.index >= list.length->most(types.arch().word_size))
    return refuse_step(index_of(step) < 0 ? "a list has no elements before its first" : "an element beyond any list",
                       step);
  Object element = element_of(object, list, step.index);
  element.text = object.followed_by(fmt::format("[{}]", step.index));
  return element;
}

Result<Object> take_element(const ObjectTypes& types, Object object, const PathStep& step) {
  object = without_wrapper(types, std::move(object));
  auto type = TRY(types.info(object.type));
  if (!type.no_number.empty()) return refuse_step(fmt::format("{} is {}", object.text, type.no_number), step);
  if (const auto list = list_of(types, object)) return take_list_element(types, object, *list, step);
  const bool star = step.kind == PathStep::Kind::dereference;
  std::string text = star ? "*" + object.text : object.followed_by(fmt::format("[{}]", index_of(step)));
  const bool array = type.type.kind == TypeKind::array;
  if (!array && type.type.kind != TypeKind::pointer && type.type.kind != TypeKind::text)
    return refuse_step(fmt::format("{} is no pointer{} but {}", object.text, star ? "" : " or array", type.text), step);
  const TypeRef target = target_of(object.type, type);
  const auto element = TRY(types.info(target));
  if (element.type.size == 0 && (step.index != 0 || element.text.empty()))
    return refuse_step(fmt::format("{}what {} points to is not known",
                                   element.type.kind == TypeKind::array ? "the size of " : "", object.text),
                       step);
  if (array && type.count && step.index >= *type.count)
    return refuse_step(fmt::format("{} has {} elements, the last one [{}]", object.text, *type.count,
                                   *type.count == 0 ? 0 : *type.count - 1),
                       step);
  if (std::abs(index_of(step)) > (std::int64_t{1} << 40) / std::max<std::int64_t>(element.type.size, 1))
    return refuse_step("an element beyond any array", step);
  if (!array) object = dereferenced(types, std::move(object), target);
  object.place = moved(std::move(object.place), step.index * element.type.size);
  object.type = target;
  object.range = {};
  object.text = std::move(text);
  object.is_sum = star;
  return object;
}

Result<Object> take_cast(const ObjectTypes& types, Object object, const PathStep& step) {
  const auto [qualified, pointers] = split_pointers(step.name);
  const std::string name(without_qualifiers(qualified));
  if (pointers == 0) return refuse_step(fmt::format("({}): casts are to pointers", step.name), step);
  auto type = TRY(types.info(object.type));
  if (object.type.is_known() && (type.type.size != types.arch().word_size || type.type.is_float()))
    return refuse_step(fmt::format("{} is {}, not of a pointer's size", object.text, type.text), step);
  TypeRef target{TypeId::none, pointers};
  if (name != "void") {
    auto found = types.named(name);
    if (!found) return refuse_step(found.error().message, step);
    target = {found->id, pointers, found->basic};
  }
  object.place = number_of(types, object, types.arch().word_size);
  object.type = target;
  object.range = {};
  object.text = fmt::format("({}){}", step.name, object.is_sum ? fmt::format("({})", object.text) : object.text);
  object.is_sum = true;
  return object;
}

/// Takes what a type of some library has beside its members, written like one: "size", "value". `text`: the whole.
Result<Object> take_known_member(const ObjectTypes& types, Object object, const TypeInfo& type, std::string text,
                                 const PathStep& step) {
  if (auto list = step.name == "size" ? list_of(types, object) : std::nullopt) {
    object.length = std::move(list->length);
    object.type = {.basic = find_basic_type("size_t")};
    object.text = std::move(text);
    object.is_sum = false;
    return object;
  }
  if (auto known = known_member(types, object, type, step.name)) return *std::move(known);
  if (type.type.size == 0)
    return refuse_step(fmt::format("{} is only declared here: its members are not known", type.text), step);
  const auto near = types.near_members(object.type.id, step.name);
  return refuse_step(fmt::format("{} has no member '{}'{}", type.text, step.name,
                                 near.empty() ? "" : fmt::format("; it has {}", fmt::join(near, ", "))),
                     step);
}

Result<Object> take_member(const ObjectTypes& types, Object object, const PathStep& step) {
  auto type = TRY(types.info(object.type));
  const bool arrow = step.kind == PathStep::Kind::pointer_member;
  const bool pointer = type.type.kind == TypeKind::pointer || type.type.kind == TypeKind::text;
  std::string text = object.followed_by(fmt::format("{}{}", arrow ? "->" : ".", step.name));
  if (arrow && !pointer && type.type.kind == TypeKind::structure)
    return refuse_step(
        fmt::format("{} is no pointer but {}: write {}.{}", object.text, type.text, object.text, step.name), step);
  if (arrow && !pointer) return refuse_step(fmt::format("{} is no pointer but {}", object.text, type.text), step);
  if (pointer) {  // of which "." is taken for "->", as by debuggers
    const TypeRef target = target_of(object.type, type);
    object = dereferenced(types, std::move(object), target);
    type = TRY(types.info(object.type));
  }
  if (!type.parts.empty()) return take_part(std::move(object), type, step);
  if (type.type.kind != TypeKind::structure || object.type.pointers > 0)
    return refuse_step(fmt::format("{} has no members: it is {}", pointer ? "*" + object.text : object.text,
                                   type.text.empty() ? "void" : type.text),
                       step);
  auto found = TRY(types.find_member(object.type.id, step.name));
  if (!found) return take_known_member(types, std::move(object), type, std::move(text), step);
  const MemberInfo& member = *found;
  if (member.is_virtual)
    return refuse_step(fmt::format("{} is in a virtual base class, whose place is known only at run time", text), step);
  object = member_of(types, std::move(object), member);
  object.text = std::move(text);
  object.is_sum = false;
  return object;
}

/// Takes "&": a pointer to an object that is in memory.
Result<Object> take_address(const ObjectTypes& types, Object object, const PathStep& step) {
  const auto type = TRY(types.info(object.type));
  if (object.range.bits != 0) return refuse_step(fmt::format("{} is some bits of a number", object.text), step);
  if (!is_in_memory(object.place, type.type.size))
    return refuse_step(fmt::format("{} is in no memory: it has no address", object.text), step);
  object.place = address_of(object.place, object.text, types.arch());
  object.text = "&" + object.text;
  object.is_sum = true;
  object.range = {};
  ++object.type.pointers;
  return object;
}

}  // namespace

std::pair<std::string, unsigned> split_pointers(std::string_view text) {
  unsigned pointers = 0;
  while (!text.empty() && (text.back() == '*' || text.back() == ' ')) {
    pointers += text.back() == '*';
    text.remove_suffix(1);
  }
  return {std::string(text), pointers};
}

Result<Object> take_step(const ObjectTypes& types, Object object, const PathStep& step) {
  if (object.length) return refuse_step(fmt::format("{} is a number", object.text), step);
  if (step.kind == PathStep::Kind::cast) return take_cast(types, std::move(object), step);
  object = TRY(without_reference(types, std::move(object)));
  if (!object.type.is_known() && object.type.pointers == 0)
    return refuse_step(fmt::format("the type of {} is not known: cast it, as in ((struct NAME *){})->MEMBER",
                                   object.text, object.text),
                       step);
  if (step.kind == PathStep::Kind::address_of) return take_address(types, std::move(object), step);
  const bool member = step.kind == PathStep::Kind::member || step.kind == PathStep::Kind::pointer_member;
  return member ? take_member(types, std::move(object), step) : take_element(types, std::move(object), step);
}

}  // namespace usdt::resolve
