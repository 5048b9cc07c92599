// SPDX-License-Identifier: BSD-2-Clause
// What an object holds only at times, of which a number in it tells: variants of Rust's enums, std::optional,
// std::variant. The number is read with it, and whoever shows values compares.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/try.hpp"
#include "resolve/follow.hpp"

namespace usdt::resolve {
namespace {

// Names that begin with an underscore are the library's alone, so that they tell the type whatever typedefs call it.

/// An object that is there, or not.
struct KnownOptional {
  std::string_view value;
  std::string_view there;  ///< a bool
};
/// libstdc++ and libc++.
constexpr std::array kKnownOptionals{
    KnownOptional{"_M_payload._M_payload._M_value", "_M_payload._M_engaged"},
    KnownOptional{"__val_", "__engaged_"},
};

/// One of several types, and which of them (libstdc++: <variant>; libc++ of LLVM 16 and later, and before).
struct KnownVariant {
  std::string_view storage;  ///< a union
  std::string_view index;
};
constexpr std::array kKnownVariants{
    KnownVariant{"_M_u", "_M_index"},
    KnownVariant{"__impl_.__data", "__impl_.__index"},
    KnownVariant{"__impl.__data", "__impl.__index"},
};

/// Containers that keep their elements in nodes, and how many. libstdc++: bits/stl_tree.h, hashtable.h, stl_list.h.
/// libc++: __tree, __hash_table, list; of LLVM 19 and later, and before, beside an empty object in a __compressed_pair.
struct KnownContainer {
  std::string_view size;
  std::string_view type = {};  ///< its name begins so
};
constexpr std::array kKnownContainers{
    KnownContainer{"_M_t._M_impl._M_node_count"},
    KnownContainer{"_M_h._M_element_count"},
    KnownContainer{"_M_impl._M_node._M_size"},
    KnownContainer{"__tree_.__size_"},
    KnownContainer{"__tree_.__pair3_.__value_"},
    KnownContainer{"__table_.__size_"},
    KnownContainer{"__table_.__p2_.__value_"},
    KnownContainer{"__size_", "std::__1::list<"},  // views have such a member, too
    KnownContainer{"__size_alloc_.__value_"},
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
  TRY(place_in_list(object.within, arg));
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
    TRY(place_in_whole(object, discriminant));
    auto appended = TRY(append(std::move(discriminant)));
    position = static_cast<std::uint8_t>(appended);
  }
  arg.alternative =
      std::make_shared<const AlternativeOf>(AlternativeOf{*position, alternative->values, alternative->reason});
  return {};
}

std::optional<Follower::Object> Follower::value_of_optional(const Object& object, const TypeInfo& type) const {
  if (type.type.kind != TypeKind::structure) return std::nullopt;
  for (const KnownOptional& known : kKnownOptionals) {
    auto value = object_within(object, known.value);
    const auto there = object_within(object, known.there);
    const auto flag = there ? info(there->type) : Result<TypeInfo>(TypeInfo{});
    if (!value || !flag || flag->type.kind != TypeKind::boolean) continue;
    value->alternative = alternative_by(object, *there, {.ranges = {{1, 1}}}, fmt::format("{} is empty", object.text));
    value->text = object.followed_by(".value");
    value->is_sum = false;
    return value;
  }
  return std::nullopt;
}

/// All alternatives begin where the union does that they are in; of which types they are the template's arguments tell.
std::optional<Follower::Variant> Follower::variant_of(const Object& object, const TypeInfo& type) const {
  if (type.type.kind != TypeKind::structure || object.type.pointers > 0) return std::nullopt;
  for (const KnownVariant& known : kKnownVariants) {
    const auto storage = object_within(object, known.storage);
    auto index = object_within(object, known.index);
    const auto held = storage ? info(storage->type) : Result<TypeInfo>(TypeInfo{});
    const auto number = index ? info(index->type) : Result<TypeInfo>(TypeInfo{});
    if (!storage || !index || !held || !held->is_union || !number || number->type.kind != TypeKind::integer) continue;
    if (number->type.size == 0 || number->type.size > 4) continue;
    const std::uint64_t nothing = UINT64_MAX >> (64 - 8 * number->type.size);  // std::variant_npos
    Variant found{.index = *index, .values = {}};
    found.index.alternative = alternative_by(object, *index, {.ranges = {{nothing, nothing}}, .others = true},
                                             fmt::format("{} holds nothing", object.text));
    found.index.text = object.followed_by(".index");
    found.index.is_sum = false;
    const std::vector<TypeId> types = types_->template_types(object.type.id);
    for (std::uint64_t i = 0; i < types.size(); ++i) {
      const auto each = info({types[i]});
      if (!each || each->type.size == 0 || each->type.size > held->type.size) return std::nullopt;
      Object& value = found.values.emplace_back(*storage);
      value.type = {types[i]};
      value.range = {};
      value.alternative = alternative_by(object, *index, {.ranges = {{i, i}}},
                                         fmt::format("{} does not hold its alternative {}", object.text, i));
      value.text = object.followed_by(".value");
      value.is_sum = false;
    }
    if (!found.values.empty()) return found;
  }
  return std::nullopt;
}

Result<void> Follower::show_variant(const Variant& variant, unsigned depth, std::uint8_t holder) {
  TRY(show(variant.index, depth, std::nullopt, holder));
  for (const Object& each : variant.values) {
    if (has_room()) {
      TRY(show(each, depth, std::nullopt, holder));
      continue;
    }
    Arg arg = make(each, {}, {Unreadable{"more values than one point has room for"}});
    arg.part_of = holder;
    auto placed = place_in_whole(each, arg);
    if (!placed) return placed;
    auto appended = append(std::move(arg));
    return appended ? Result<void>{} : fail(std::move(appended.error()));
  }
  return {};
}

std::optional<Follower::Object> Follower::size_of_container(const Object& object, const TypeInfo& type) const {
  if (type.type.kind != TypeKind::structure || object.type.pointers > 0) return std::nullopt;
  for (const KnownContainer& known : kKnownContainers) {
    if (!unqualified(type.text).starts_with(known.type)) continue;
    auto size = object_within(object, known.size);
    const auto number = size ? info(size->type) : Result<TypeInfo>(TypeInfo{});
    if (!size || !number || number->type.kind != TypeKind::integer || number->type.size != arch_.word_size) continue;
    size->text = object.followed_by(".size");
    size->is_sum = false;
    return size;
  }
  return std::nullopt;
}

std::optional<Follower::Object> Follower::known_member(const Object& object, const TypeInfo& type,
                                                       std::string_view name) const {
  if (name == "value") return value_of_optional(object, type);
  if (name == "size") return size_of_container(object, type);
  auto variant = name == "index" ? variant_of(object, type) : std::nullopt;
  return variant ? std::optional(std::move(variant->index)) : std::nullopt;
}

Result<std::uint8_t> Follower::put_whole(const Object& object, const TypeInfo& type, std::optional<std::size_t> at,
                                         std::optional<std::uint8_t> part_of) {
  Arg holder = make(object, type, Number{Unreadable{fmt::format("struct of {} bytes", type.type.size)}});
  holder.part_of = part_of;
  TRY(place_in_whole(object, holder));
  std::size_t where = 0;
  TRY(put(std::move(holder), at, where));
  return static_cast<std::uint8_t>(where);
}

/// Shows a type of C++'s library of which only parts are known, or are there only at times; false: `object` is none.
Result<bool> Follower::show_known_alternatives(const Object& object, const TypeInfo& type, unsigned depth,
                                               std::optional<std::size_t> at, std::optional<std::uint8_t> part_of) {
  const auto value = value_of_optional(object, type);
  const auto variant = value ? std::nullopt : variant_of(object, type);
  const auto size = value || variant ? std::nullopt : size_of_container(object, type);
  if (!value && !variant && !size) return false;
  const std::uint8_t number = TRY(put_whole(object, type, at, part_of));
  Result<void> shown;
  if (variant) shown = show_variant(*variant, depth, number);
  if (value) shown = show(*value, depth, std::nullopt, number);
  if (size) shown = show(*size, depth, std::nullopt, number);
  return shown ? Result<bool>(true) : fail(std::move(shown.error()));
}

}  // namespace usdt::resolve
