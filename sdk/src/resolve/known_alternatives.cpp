// SPDX-License-Identifier: BSD-2-Clause
#include "resolve/known_alternatives.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include "base/try.hpp"

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

/// Returns what a std::optional has while it has something.
std::optional<Object> value_of_optional(const ObjectTypes& types, const Object& object, const TypeInfo& type) {
  if (type.type.kind != TypeKind::structure) return std::nullopt;
  for (const KnownOptional& known : kKnownOptionals) {
    auto value = object_within(types, object, known.value);
    const auto there = object_within(types, object, known.there);
    const auto flag = there ? types.info(there->type) : Result<TypeInfo>(TypeInfo{});
    if (!value || !flag || flag->type.kind != TypeKind::boolean) continue;
    value->alternative =
        alternative_by(types, object, *there, {.ranges = {{1, 1}}}, fmt::format("{} is empty", object.text));
    value->text = object.followed_by(".value");
    value->is_sum = false;
    return value;
  }
  return std::nullopt;
}

/// Holds what a std::variant may hold, by its alternatives.
struct Variant {
  Object index;
  std::vector<Object> values;
};

/// All alternatives begin where the union does that they are in; of which types they are the template's arguments tell.
std::optional<Variant> variant_of(const ObjectTypes& types, const Object& object, const TypeInfo& type) {
  if (type.type.kind != TypeKind::structure || object.type.pointers > 0) return std::nullopt;
  for (const KnownVariant& known : kKnownVariants) {
    const auto storage = object_within(types, object, known.storage);
    auto index = object_within(types, object, known.index);
    const auto held = storage ? types.info(storage->type) : Result<TypeInfo>(TypeInfo{});
    const auto number = index ? types.info(index->type) : Result<TypeInfo>(TypeInfo{});
    if (!storage || !index || !held || !held->is_union || !number || number->type.kind != TypeKind::integer) continue;
    if (number->type.size == 0 || number->type.size > 4) continue;
    const std::uint64_t nothing = UINT64_MAX >> (64 - 8 * number->type.size);  // std::variant_npos
    Variant found{.index = *index, .values = {}};
    found.index.alternative = alternative_by(types, object, *index, {.ranges = {{nothing, nothing}}, .others = true},
                                             fmt::format("{} holds nothing", object.text));
    found.index.text = object.followed_by(".index");
    found.index.is_sum = false;
    const std::vector<TypeId> held_types = types.graph()->template_types(object.type.id);
    for (std::uint64_t i = 0; i < held_types.size(); ++i) {
      const auto each = types.info({held_types[i]});
      if (!each || each->type.size == 0 || each->type.size > held->type.size) return std::nullopt;
      Object& value = found.values.emplace_back(*storage);
      value.type = {held_types[i]};
      value.range = {};
      value.alternative = alternative_by(types, object, *index, {.ranges = {{i, i}}},
                                         fmt::format("{} does not hold its alternative {}", object.text, i));
      value.text = object.followed_by(".value");
      value.is_sum = false;
    }
    if (!found.values.empty()) return found;
  }
  return std::nullopt;
}

/// How many elements a container of C++ has that keeps them in nodes, which are not shown.
std::optional<Object> size_of_container(const ObjectTypes& types, const Object& object, const TypeInfo& type) {
  if (type.type.kind != TypeKind::structure || object.type.pointers > 0) return std::nullopt;
  for (const KnownContainer& known : kKnownContainers) {
    if (!unqualified(type.text).starts_with(known.type)) continue;
    auto size = object_within(types, object, known.size);
    const auto number = size ? types.info(size->type) : Result<TypeInfo>(TypeInfo{});
    if (!size || !number || number->type.kind != TypeKind::integer || number->type.size != types.arch().word_size)
      continue;
    size->text = object.followed_by(".size");
    size->is_sum = false;
    return size;
  }
  return std::nullopt;
}

Result<void> show_variant(ValueList& list, const Variant& variant, std::uint8_t whole, const ShowPart& show) {
  TRY(show(variant.index, whole));
  for (const Object& each : variant.values) {
    if (list.has_room()) {
      TRY(show(each, whole));
      continue;
    }
    TRY(list.put_whole(each, {}, "more values than one point has room for", {.part_of = whole}));
    return {};
  }
  return {};
}

}  // namespace

std::optional<Object> known_member(const ObjectTypes& types, const Object& object, const TypeInfo& type,
                                   std::string_view name) {
  if (name == "value") return value_of_optional(types, object, type);
  if (name == "size") return size_of_container(types, object, type);
  auto variant = name == "index" ? variant_of(types, object, type) : std::nullopt;
  return variant ? std::optional(std::move(variant->index)) : std::nullopt;
}

Result<bool> show_known_alternatives(ValueList& list, const Object& object, const TypeInfo& type,
                                     const ListPosition& to, const ShowPart& show) {
  const ObjectTypes& types = list.types();
  const auto value = value_of_optional(types, object, type);
  const auto variant = value ? std::nullopt : variant_of(types, object, type);
  const auto size = value || variant ? std::nullopt : size_of_container(types, object, type);
  if (!value && !variant && !size) return false;
  const std::uint8_t whole = TRY(list.put_whole(object, type, fmt::format("struct of {} bytes", type.type.size), to));
  if (variant) {
    TRY(show_variant(list, *variant, whole, show));
  } else {
    TRY(show(value ? *value : *size, whole));
  }
  return true;
}

}  // namespace usdt::resolve
