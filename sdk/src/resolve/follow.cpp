// SPDX-License-Identifier: BSD-2-Clause
// The steps of paths, from an argument to the object that they lead to.
#include "resolve/follow.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/near_text.hpp"
#include "base/try.hpp"
#include "usdt/bpf/spec.h"

namespace usdt::resolve {
namespace {

/// Members looked at for one point's paths: hostile types are within each other many times.
constexpr std::uint64_t kMostLookedAt = 1 << 20;

/// The index of an element as it was written.
std::int64_t index_of(const PathStep& step) noexcept { return static_cast<std::int64_t>(step.index); }

/// "foo *" of "struct foo **" and so on: the type's name, and how many pointers to it.
std::pair<std::string, unsigned> split_pointers(std::string_view text) {
  unsigned pointers = 0;
  while (!text.empty() && (text.back() == '*' || text.back() == ' ')) {
    pointers += text.back() == '*';
    text.remove_suffix(1);
  }
  return {std::string(text), pointers};
}

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

}  // namespace

Result<TypeInfo> Follower::info(TypeRef type) const {
  if (type.pointers == 0 && type.basic != nullptr) {
    const BasicType& basic = *type.basic;
    TypeInfo info;
    info.type = {.size = arch_.word_size, .is_signed = basic.is_signed, .kind = basic.kind};
    if (basic.size != 0) info.type.size = basic.size;
    info.text = basic.name;
    info.is_char = basic.is_char;
    return info;
  }
  if (type.pointers == 0) {
    if (types_ == nullptr || type.id == TypeId::none) return TypeInfo{};
    return types_->info(type.id);
  }
  auto target = info({type.id, type.pointers - 1, type.basic});
  if (!target) return target;
  TypeInfo pointer;
  const bool text = type.pointers == 1 && target->is_char;
  pointer.type = {.size = arch_.word_size, .kind = text ? TypeKind::text : TypeKind::pointer};
  pointer.text = fmt::format("{}{}*", target->text, target->text.ends_with('*') ? "" : " ");
  pointer.target = type.id;
  return pointer;
}

Follower::TypeRef Follower::target_of(const TypeRef& type, const TypeInfo& known) noexcept {
  return type.pointers > 0 ? TypeRef{type.id, type.pointers - 1, type.basic} : TypeRef{known.target};
}

/// One that the source has where the arguments are, whose unit knows what is meant by a name.
TypeId Follower::known_type() const {
  const auto known = std::ranges::find_if(list_.types, [](TypeId each) { return each != TypeId::none; });
  return known == list_.types.end() ? TypeId::none : *known;
}

/// What the program or kernel itself calls so comes first: "char" is of four bytes in Rust.
Result<Follower::TypeRef> Follower::named(const std::string& name) const {
  Result<TypeId> found = fail(ErrorKind::not_found, fmt::format("({}): no types are known here but C's own", name));
  if (types_ != nullptr) found = types_->find_beside(name, known_type());
  if (found) return TypeRef{*found};
  if (const BasicType* basic = find_basic_type(name); basic != nullptr) return TypeRef{.basic = basic};
  return fail(std::move(found.error()));
}

Result<std::vector<MemberInfo>> Follower::members_of(TypeId type) const {
  auto members = types_->members(type);
  if (members && (looked_at_ += members->size() + 1) > kMostLookedAt)
    return fail(ErrorKind::limit, "types within types without end");
  return members;
}

Follower::Object Follower::object_of(std::size_t n) const {
  const Arg& arg = roots_[n];
  Object object{
      .place = Number{arg.location, arg.steps}, .type = {}, .text = {}, .result = arg.result, .needs = arg.needs};
  object.text = arg.result ? "retval" : arg.name().empty() ? fmt::format("arg{}", n) : std::string(arg.name());
  if (n < list_.types.size()) object.type.id = list_.types[n];
  const bool in_pieces = n < list_.pieces.size() && !list_.pieces[n].empty();
  if (in_pieces) {
    object.place = InPieces{list_.pieces[n]};
  } else if (const auto* memory = std::get_if<Memory>(&arg.location); memory != nullptr && !memory->is_value) {
    object.place = InMemory{*memory};
  }
  return object;
}

/// Whether a path begins from argument `n`.
bool Follower::is_root(const ValuePath& path, std::size_t n) const {
  const Arg& arg = roots_[n];
  if (arg.result) return path.root == ArgName("retval");
  const auto* number = std::get_if<std::uint8_t>(&path.root);
  return number != nullptr ? *number == n : arg.name() == std::get<std::string>(path.root);
}

Result<Follower::Object> Follower::root_of(const ValuePath& path) const {
  for (std::size_t n = 0; n < roots_.size(); ++n)
    if (is_root(path, n)) return object_of(n);
  return fail(ErrorKind::not_found, fmt::format("{}: no such argument", path.text));
}

Result<Follower::Object> Follower::without_reference(Object object) const {
  auto type = TRY(info(object.type));
  if (!type.reference) return object;
  const std::string text = object.text;
  const bool is_sum = object.is_sum;
  object = dereferenced(std::move(object), {type.target});
  object.text = text;
  object.is_sum = is_sum;
  return object;
}

Number Follower::number_of(const Object& object, std::uint32_t size) const {
  const auto type = info(object.type);
  if (type && !type->no_number.empty()) return {Unreadable{.reason = type->no_number}};
  BitRange range = object.range;
  range.swapped = type && type->swapped;
  return number_at(object.place, size, range, object.text, arch_);
}

Follower::Object Follower::dereferenced(Object object, TypeRef target) const {
  BehindPointer place{number_of(object, arch_.word_size), 0, object.text};
  object.place = std::move(place);
  object.type = target;
  object.range = {};
  return object;
}

Result<Follower::Object> Follower::take(Object object, const PathStep& step) const {
  if (object.length) return refuse_step(fmt::format("{} is a number", object.text), step);
  if (step.kind == PathStep::Kind::cast) return take_cast(std::move(object), step);
  auto referred = without_reference(std::move(object));
  if (!referred) return referred;
  object = std::move(*referred);
  if (!object.type.is_known() && object.type.pointers == 0)
    return refuse_step(fmt::format("the type of {} is not known: cast it, as in ((struct NAME *){})->MEMBER",
                                   object.text, object.text),
                       step);
  const bool member = step.kind == PathStep::Kind::member || step.kind == PathStep::Kind::pointer_member;
  return member ? take_member(std::move(object), step) : take_element(std::move(object), step);
}

Result<std::optional<MemberInfo>> Follower::find_member(TypeId type, std::string_view name, unsigned depth) const {
  auto members = TRY(members_of(type));
  for (const MemberInfo& each : members)
    if (each.name == name && !each.is_base) return each;
  if (depth == kMostNested) return std::nullopt;
  // What is in something without a name is the struct's own, and hides what base classes have.
  std::optional<MemberInfo> found;
  for (const bool of_base : {false, true}) {
    for (const MemberInfo& each : members) {
      if (found && !of_base) return found;
      if (each.is_base != of_base || (!of_base && !each.name.empty())) continue;
      auto inner = find_member(each.type, name, depth + 1);
      if (!inner) return inner;
      if (!*inner) continue;
      (*inner)->offset += each.offset;
      (*inner)->is_virtual |= each.is_virtual;
      if ((*inner)->variant && each.variant) continue;  // of two at once nothing is told
      if ((*inner)->variant) (*inner)->variant->offset += each.offset;
      if (each.variant) (*inner)->variant = each.variant;
      if (found) {
        auto one = TRY(one_of(*std::move(found), **std::move(inner)));
        found = std::move(one);
      } else {
        found = **std::move(inner);
      }
    }
  }
  return found;
}

/// Of two members of one name, in different base classes: as in C++ neither, but for what hides that of a virtual base,
/// or is beside an object without members, as deleters and allocators are.
Result<MemberInfo> Follower::one_of(MemberInfo one, MemberInfo other) const {
  if (one.is_virtual != other.is_virtual) return one.is_virtual ? std::move(other) : std::move(one);
  if (one.is_virtual) return one;  // the same, for all that is known
  const auto is_empty = [this](const MemberInfo& member) {
    const auto type = info({member.type});
    if (!type || type->type.kind != TypeKind::structure || type->type.size > 1) return false;
    const auto members = members_of(member.type);
    return members && members->empty();
  };
  if (is_empty(one)) return other;
  if (is_empty(other)) return one;
  return fail(ErrorKind::invalid_argument, fmt::format("'{}' is a member of several base classes", one.name));
}

std::vector<std::string> Follower::near_members(TypeId type, std::string_view name) const {
  NearTexts near(name);
  const auto members = members_of(type);
  if (members) {
    for (const MemberInfo& each : *members) near.offer(each.name);
  }
  return std::move(near).best();
}

Result<Follower::Object> Follower::take_member(Object object, const PathStep& step) const {
  auto type = info(object.type);
  if (!type) return fail(std::move(type.error()));
  const bool arrow = step.kind == PathStep::Kind::pointer_member;
  const bool pointer = type->type.kind == TypeKind::pointer || type->type.kind == TypeKind::text;
  std::string text = object.followed_by(fmt::format("{}{}", arrow ? "->" : ".", step.name));
  if (arrow && !pointer && type->type.kind == TypeKind::structure)
    return refuse_step(
        fmt::format("{} is no pointer but {}: write {}.{}", object.text, type->text, object.text, step.name), step);
  if (arrow && !pointer) return refuse_step(fmt::format("{} is no pointer but {}", object.text, type->text), step);
  if (pointer) {  // of which "." is taken for "->", as by debuggers
    const TypeRef target = target_of(object.type, *type);
    object = dereferenced(std::move(object), target);
    type = info(object.type);
    if (!type) return fail(std::move(type.error()));
  }
  if (!type->parts.empty()) return take_part(std::move(object), *type, step);
  if (type->type.kind != TypeKind::structure || object.type.pointers > 0)
    return refuse_step(fmt::format("{} has no members: it is {}", pointer ? "*" + object.text : object.text,
                                   type->text.empty() ? "void" : type->text),
                       step);
  auto found = TRY(find_member(object.type.id, step.name));
  if (!found) {
    if (step.name == "size") {
      if (auto list = list_of(object)) {
        object.length = std::move(list->length);
        object.type = {.basic = find_basic_type("size_t")};
        object.text = std::move(text);
        object.is_sum = false;
        return object;
      }
    }
    if (auto known = known_member(object, *type, step.name)) return *std::move(known);
    if (type->type.size == 0)
      return refuse_step(fmt::format("{} is only declared here: its members are not known", type->text), step);
    const auto near = near_members(object.type.id, step.name);
    return refuse_step(fmt::format("{} has no member '{}'{}", type->text, step.name,
                                   near.empty() ? "" : fmt::format("; it has {}", fmt::join(near, ", "))),
                       step);
  }
  const MemberInfo& member = *found;
  if (member.is_virtual)
    return refuse_step(fmt::format("{} is in a virtual base class, whose place is known only at run time", text), step);
  object.alternative = alternative_in(object, member);
  object.place = moved(std::move(object.place), member.offset);
  object.type = {member.type};
  object.range = {member.shift, member.bits};
  object.text = std::move(text);
  object.is_sum = false;
  return object;
}

/// "low" of a number of 16 bytes, "real" of a complex one.
Result<Follower::Object> Follower::take_part(Object object, const TypeInfo& type, const PathStep& step) const {
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

Result<Follower::Object> Follower::take_list_element(const Object& object, const List& list,
                                                     const PathStep& step) const {
  if (step.kind == PathStep::Kind::dereference)
    return refuse_step(fmt::format("{} is no pointer but a list: write {}[0]", object.text, object.text), step);
  if (step.index >= list.length->most(arch_.word_size))
    return refuse_step(index_of(step) < 0 ? "a list has no elements before its first" : "an element beyond any list",
                       step);
  Object element = element_of(object, list, step.index);
  element.text = object.followed_by(fmt::format("[{}]", step.index));
  return element;
}

Result<Follower::Object> Follower::take_element(Object object, const PathStep& step) const {
  object = without_wrapper(std::move(object));
  auto type = TRY(info(object.type));
  if (!type.no_number.empty()) return refuse_step(fmt::format("{} is {}", object.text, type.no_number), step);
  if (const auto list = list_of(object)) return take_list_element(object, *list, step);
  const bool star = step.kind == PathStep::Kind::dereference;
  std::string text = star ? "*" + object.text : object.followed_by(fmt::format("[{}]", index_of(step)));
  const bool array = type.type.kind == TypeKind::array;
  if (!array && type.type.kind != TypeKind::pointer && type.type.kind != TypeKind::text)
    return refuse_step(fmt::format("{} is no pointer{} but {}", object.text, star ? "" : " or array", type.text), step);
  const TypeRef target = target_of(object.type, type);
  auto element = info(target);
  if (!element) return fail(std::move(element.error()));
  if (element->type.size == 0 && (step.index != 0 || element->text.empty()))
    return refuse_step(fmt::format("{}what {} points to is not known",
                                   element->type.kind == TypeKind::array ? "the size of " : "", object.text),
                       step);
  if (array && type.count && step.index >= *type.count)
    return refuse_step(fmt::format("{} has {} elements, the last one [{}]", object.text, *type.count,
                                   *type.count == 0 ? 0 : *type.count - 1),
                       step);
  if (std::abs(index_of(step)) > (std::int64_t{1} << 40) / std::max<std::int64_t>(element->type.size, 1))
    return refuse_step("an element beyond any array", step);
  if (!array) object = dereferenced(std::move(object), target);
  object.place = moved(std::move(object.place), step.index * element->type.size);
  object.type = target;
  object.range = {};
  object.text = std::move(text);
  object.is_sum = star;
  return object;
}

Result<Follower::Object> Follower::take_cast(Object object, const PathStep& step) const {
  const auto [qualified, pointers] = split_pointers(step.name);
  const std::string name(without_qualifiers(qualified));
  if (pointers == 0) return refuse_step(fmt::format("({}): casts are to pointers", step.name), step);
  auto type = TRY(info(object.type));
  if (object.type.is_known() && (type.type.size != arch_.word_size || type.type.is_float()))
    return refuse_step(fmt::format("{} is {}, not of a pointer's size", object.text, type.text), step);
  TypeRef target{TypeId::none, pointers};
  if (name != "void") {
    auto found = named(name);
    if (!found) return refuse_step(found.error().message, step);
    target = {found->id, pointers, found->basic};
  }
  object.place = number_of(object, arch_.word_size);
  object.type = target;
  object.range = {};
  object.text = fmt::format("({}){}", step.name, object.is_sum ? fmt::format("({})", object.text) : object.text);
  object.is_sum = true;
  return object;
}

Result<void> Follower::append_size(const ValuePath& path) {
  TypeRef type;
  auto object = root_of(path);
  if (object) {
    for (std::size_t i = 0; i + 1 < path.steps.size() && object; ++i) object = take(std::move(*object), path.steps[i]);
    if (object) object = without_reference(std::move(*object));
    if (!object) return fail(std::move(object.error()));
    type = object->type;
  } else if (path.steps.size() == 1 && types_ != nullptr && std::holds_alternative<std::string>(path.root)) {
    const auto [name, pointers] = split_pointers(std::get<std::string>(path.root));
    auto found = TRY(types_->find_beside(name, known_type()));
    type = {.id = found, .pointers = pointers};
  } else {
    return fail(std::move(object.error()));
  }
  auto what = TRY(info(type));
  if (what.type.size == 0)
    return fail(ErrorKind::invalid_argument, fmt::format("{}: its size is not known", path.text));
  Object size;
  size.text = path.text;
  TypeInfo type_of_size;
  type_of_size.type = {.size = 8};
  type_of_size.text = "unsigned long";
  auto appended = append(make(size, type_of_size, Number{Constant{what.type.size}}));
  return appended ? Result<void>{} : fail(std::move(appended.error()));
}

Result<void> Follower::add(const ValuePath& path) {
  if (!path.steps.empty()) {
    if (path.steps.back().kind == PathStep::Kind::size_of) return append_size(path);
    if (path.steps.back().kind == PathStep::Kind::bytes) return append_bytes(path);
    if (path.steps.back().kind == PathStep::Kind::address) return append_address(path);
  }
  auto object = root_of(path);
  if (!object) return fail(std::move(object.error()));
  for (const PathStep& step : path.steps) {
    object = take(std::move(*object), step);
    if (!object) return fail(std::move(object.error()));
  }
  object->text = path.text;
  object->is_sum = true;
  return show(std::move(*object), depth_.structures, std::nullopt, std::nullopt);
}

}  // namespace usdt::resolve
