// SPDX-License-Identifier: BSD-2-Clause
// Interfaces of Go: which type their value has, by the addresses that stand for types, and what is known of the value.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/try.hpp"
#include "resolve/follow.hpp"

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

}  // namespace

/// (runtime2.go: iface and eface.)
std::optional<Follower::Interface> Follower::interface_of(const Object& object, const TypeInfo& type) const {
  if (type.type.kind != TypeKind::structure || object.type.pointers > 0) return std::nullopt;
  const auto data = object_within(object, "data");
  const auto table = data ? object_within(object, "tab") : std::nullopt;
  const auto word = table ? table : data ? object_within(object, "_type") : std::nullopt;
  const auto known = word ? info(word->type) : Result<TypeInfo>(TypeInfo{});
  if (!word || !known || known->type.size != arch_.word_size) return std::nullopt;
  const bool is_table = is_pointer_to(known->text, "runtime.itab", "internal/abi.ITab");
  if (!table && !is_pointer_to(known->text, "runtime._type", "internal/abi.Type")) return std::nullopt;
  if (table && !is_table) return std::nullopt;
  Interface found{.word = *word, .type = *word, .data = *data};
  found.word.text = found.type.text = found.data.text = object.text;
  found.there =
      alternative_by(object, found.word, {.ranges = {{0, 0}}, .others = true}, fmt::format("{} is nil", object.text));
  found.nil = alternative_by(object, found.word, {.ranges = {{0, 0}}}, fmt::format("{} is not nil", object.text));
  if (table) {
    const Object behind = dereferenced(found.word, target_of(word->type, *known));
    auto inner = object_within(behind, "_type");
    if (!inner) inner = object_within(behind, "Type");
    if (!inner) return std::nullopt;
    found.type = *std::move(inner);
  }
  found.type.alternative = found.data.alternative = found.there;
  return found;
}

/// A part that says the type by its name, which is an enumerator of the address that stands for it.
Result<void> Follower::show_dynamic_type(const Object& object, const Interface& value, std::uint8_t holder,
                                         const std::vector<DynamicType>& types) {
  TypeInfo as_name;
  as_name.type = {.size = arch_.word_size, .kind = types.empty() ? TypeKind::pointer : TypeKind::enumeration};
  as_name.text = "type";
  for (const bool nil : {true, false}) {
    Object part = value.type;
    part.type = {};
    part.text = object.followed_by(".type");
    part.alternative = nil ? value.nil : value.there;
    Arg arg = make(part, as_name, nil ? Number{Constant{0}} : number_of(value.type, arch_.word_size));
    Declaration named = *arg.declaration;
    named.meaning = "type";
    if (nil) named.enumerators = {{"nil", 0}};
    if (nil) arg.type.kind = TypeKind::enumeration;
    if (!nil)
      for (const DynamicType& each : types) named.enumerators.push_back({each.name, each.address});
    arg.declaration = std::make_shared<const Declaration>(std::move(named));
    arg.part_of = holder;
    TRY(place_in_whole(part, arg));
    TRY(append(std::move(arg)));
  }
  return {};
}

/// What is behind the interface's second word where its type is `dynamic`; nothing: that is not shown.
std::optional<Follower::Object> Follower::value_in_interface(const Object& object, const Interface& value,
                                                             const DynamicType& dynamic) const {
  const auto message = std::ranges::find(kKnownMessages, dynamic.name, &KnownMessage::type);
  const bool as_it_is = std::ranges::find(kShownValues, dynamic.name) != kShownValues.end();
  if (message == kKnownMessages.end() && !as_it_is) return std::nullopt;
  auto type = info({dynamic.type});
  if (!type) return std::nullopt;
  Object inner = dereferenced(value.data, as_it_is ? TypeRef{dynamic.type} : TypeRef{type->target});
  if (!as_it_is) {
    auto text = object_within(inner, message->member);
    if (!text) return std::nullopt;
    inner = *std::move(text);
  }
  inner.alternative = alternative_by(value.type, value.type, {.ranges = {{dynamic.address, dynamic.address}}},
                                     fmt::format("{} is not {}", object.text, dynamic.name));
  inner.text = object.followed_by(as_it_is ? ".value" : ".message");
  inner.is_sum = false;
  return inner;
}

Result<bool> Follower::show_known_interface(const Object& object, const TypeInfo& type, unsigned depth,
                                            std::optional<std::size_t> at, std::optional<std::uint8_t> part_of) {
  const auto value = interface_of(object, type);
  if (!value) return false;
  // Where the addresses of types are not known, both words are shown as they are.
  const auto types = types_->dynamic_types(type.text == "error").value_or(std::vector<DynamicType>());
  const std::uint8_t number = TRY(put_whole(object, type, at, part_of));
  TRY(show_dynamic_type(object, *value, number, types));
  AlternativeValues others{.ranges = {{0, 0}}, .others = true};
  for (const DynamicType& each : types) {
    auto inner = has_room() ? value_in_interface(object, *value, each) : std::nullopt;
    if (!inner) continue;
    others.ranges.emplace_back(each.address, each.address);
    TRY(show(*std::move(inner), depth, std::nullopt, number));
  }
  Object data = value->data;
  data.alternative =
      alternative_by(value->type, value->type, std::move(others), fmt::format("{} is shown as a value", object.text));
  data.text = object.followed_by(".data");
  auto shown = show(std::move(data), depth, std::nullopt, number);
  return shown ? Result<bool>(true) : fail(std::move(shown.error()));
}

}  // namespace usdt::resolve
