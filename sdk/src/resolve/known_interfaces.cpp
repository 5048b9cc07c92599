// SPDX-License-Identifier: BSD-2-Clause
#include "resolve/known_interfaces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "base/try.hpp"

namespace usdt::resolve {
namespace {

/// Errors of Go's library that keep their message: its member.
struct KnownMessage {
  std::string_view type;
  std::string_view member;
};
constexpr std::array kKnownMessages{
    KnownMessage{"*errors.errorString", "s"}, KnownMessage{"*fmt.wrapError", "msg"},
    KnownMessage{"*fmt.wrapErrors", "msg"},  // since 1.20
};

/// Types whose values are shown as they are. Interfaces have the address of a copy.
constexpr std::array<std::string_view, 5> kShownValues{"string", "int", "bool", "float64", "int64"};

/// "runtime.itab" until Go 1.21, "internal/abi.ITab" since.
bool is_pointer_to(std::string_view type, std::string_view before, std::string_view since) {
  return type.starts_with('*') && (type.substr(1) == before || type.substr(1) == since);
}

struct Interface {
  Object word;                                    ///< the first word, which is 0 for nil
  Object type;                                    ///< the address that stands for the type of what it has
  Object data;                                    ///< the second word
  std::shared_ptr<const Alternative> there = {};  ///< it is not nil
  std::shared_ptr<const Alternative> nil = {};
};

/// The interface that `object` is; nothing: it is none.
/// (runtime2.go: iface and eface.)
std::optional<Interface> interface_of(const ObjectTypes& types, const Object& object, const TypeInfo& type) {
  if (type.type.kind != TypeKind::structure || object.type.pointers > 0) return std::nullopt;
  const auto data = object_within(types, object, "data");
  const auto table = data ? object_within(types, object, "tab") : std::nullopt;
  const auto word = table ? table : data ? object_within(types, object, "_type") : std::nullopt;
  const auto known = word ? types.info(word->type) : Result<TypeInfo>(TypeInfo{});
  if (!word || !known || known->type.size != types.arch().word_size) return std::nullopt;
  const bool is_table = is_pointer_to(known->text, "runtime.itab", "internal/abi.ITab");
  if (!table && !is_pointer_to(known->text, "runtime._type", "internal/abi.Type")) return std::nullopt;
  if (table && !is_table) return std::nullopt;
  Interface found{.word = *word, .type = *word, .data = *data};
  found.word.text = found.type.text = found.data.text = object.text;
  found.there = alternative_by(types, object, found.word, {.ranges = {{0, 0}}, .others = true},
                               fmt::format("{} is nil", object.text));
  found.nil =
      alternative_by(types, object, found.word, {.ranges = {{0, 0}}}, fmt::format("{} is not nil", object.text));
  if (table) {
    const Object behind = dereferenced(types, found.word, target_of(word->type, *known));
    auto inner = object_within(types, behind, "_type");
    if (!inner) inner = object_within(types, behind, "Type");
    if (!inner) return std::nullopt;
    found.type = *std::move(inner);
  }
  found.type.alternative = found.data.alternative = found.there;
  return found;
}

/// The value behind the interface's second word where its type is `dynamic`; nothing: that is not shown.
std::optional<Object> value_in_interface(const ObjectTypes& types, const Object& object, const Interface& value,
                                         const DynamicType& dynamic) {
  const auto message = std::ranges::find(kKnownMessages, dynamic.name, &KnownMessage::type);
  const bool as_it_is = std::ranges::find(kShownValues, dynamic.name) != kShownValues.end();
  if (message == kKnownMessages.end() && !as_it_is) return std::nullopt;
  auto type = types.info({dynamic.type});
  if (!type) return std::nullopt;
  Object inner = dereferenced(types, value.data, as_it_is ? TypeRef{dynamic.type} : TypeRef{type->target});
  if (!as_it_is) {
    auto text = object_within(types, inner, message->member);
    if (!text) return std::nullopt;
    inner = *std::move(text);
  }
  inner.alternative = alternative_by(types, value.type, value.type, {.ranges = {{dynamic.address, dynamic.address}}},
                                     fmt::format("{} is not {}", object.text, dynamic.name));
  inner.text = object.followed_by(as_it_is ? ".value" : ".message");
  inner.is_sum = false;
  return inner;
}

/// A part that says the type by its name, which is an enumerator of the address that stands for it.
Result<void> show_dynamic_type(ValueList& list, const Object& object, const Interface& value, std::uint8_t whole,
                               const std::vector<DynamicType>& types) {
  const std::uint32_t word_size = list.types().arch().word_size;
  TypeInfo as_name;
  as_name.type = {.size = word_size, .kind = types.empty() ? TypeKind::pointer : TypeKind::enumeration};
  as_name.text = "type";
  for (const bool nil : {true, false}) {
    Object part = value.type;
    part.type = {};
    part.text = object.followed_by(".type");
    part.alternative = nil ? value.nil : value.there;
    Arg arg = list.make(part, as_name, nil ? Number{Constant{0}} : number_of(list.types(), value.type, word_size));
    Declaration named = *arg.declaration;
    named.meaning = "type";
    if (nil) named.enumerators = {{"nil", 0}};
    if (nil) arg.type.kind = TypeKind::enumeration;
    if (!nil)
      for (const DynamicType& each : types) named.enumerators.push_back({each.name, each.address});
    arg.declaration = std::make_shared<const Declaration>(std::move(named));
    TRY(list.put(std::move(arg), part, {.part_of = whole}));
  }
  return {};
}

}  // namespace

Result<bool> show_known_interface(ValueList& list, const Object& object, const TypeInfo& type, const ListPosition& to,
                                  const ShowPart& show) {
  const ObjectTypes& types = list.types();
  const auto value = interface_of(types, object, type);
  if (!value) return false;
  // Both words are shown as they are where the addresses of types are not known.
  const auto dynamic = types.graph()->dynamic_types(type.text == "error").value_or(std::vector<DynamicType>());
  const std::uint8_t whole = TRY(list.put_whole(object, type, fmt::format("struct of {} bytes", type.type.size), to));
  TRY(show_dynamic_type(list, object, *value, whole, dynamic));
  AlternativeValues others{.ranges = {{0, 0}}, .others = true};
  for (const DynamicType& each : dynamic) {
    auto inner = list.has_room() ? value_in_interface(types, object, *value, each) : std::nullopt;
    if (!inner) continue;
    others.ranges.emplace_back(each.address, each.address);
    TRY(show(*std::move(inner), whole));
  }
  Object data = value->data;
  data.alternative = alternative_by(types, value->type, value->type, std::move(others),
                                    fmt::format("{} is shown as a value", object.text));
  data.text = object.followed_by(".data");
  TRY(show(std::move(data), whole));
  return true;
}

}  // namespace usdt::resolve
