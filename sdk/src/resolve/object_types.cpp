// SPDX-License-Identifier: BSD-2-Clause
#include "resolve/object_types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/near_text.hpp"
#include "base/try.hpp"

namespace usdt::resolve {
namespace {

/// Members looked at for one point's paths: hostile types are within each other many times.
constexpr std::uint64_t kMostLookedAt = 1 << 20;

TypeInfo info_of_basic(const BasicType& basic, std::uint32_t word_size) {
  TypeInfo info;
  info.type = {.size = basic.size != 0 ? basic.size : word_size, .is_signed = basic.is_signed, .kind = basic.kind};
  info.text = basic.name;
  info.is_char = basic.is_char;
  return info;
}

}  // namespace

TypeRef target_of(const TypeRef& type, const TypeInfo& known) noexcept {
  return type.pointers > 0 ? TypeRef{type.id, type.pointers - 1, type.basic} : TypeRef{known.target};
}

Result<TypeInfo> ObjectTypes::info(const TypeRef& type) const {
  if (type.pointers == 0 && type.basic != nullptr) return info_of_basic(*type.basic, arch_.word_size);
  if (type.pointers == 0) {
    if (graph_ == nullptr || type.id == TypeId::none) return TypeInfo{};
    return graph_->info(type.id);
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

/// The type that the program or kernel itself calls so comes first: "char" is of four bytes in Rust.
Result<TypeRef> ObjectTypes::named(const std::string& name) const {
  Result<TypeId> found = fail(ErrorKind::not_found, fmt::format("({}): no types are known here but C's own", name));
  if (graph_ != nullptr) found = graph_->find_beside(name, beside_);
  if (found) return TypeRef{*found};
  if (const BasicType* basic = find_basic_type(name); basic != nullptr) return TypeRef{.basic = basic};
  return fail(std::move(found.error()));
}

std::optional<TypeRef> ObjectTypes::named_exactly(std::string_view name) const {
  if (name.empty()) return std::nullopt;
  const auto found = graph_->find_all(name);
  if (!found || found->size() != 1) return std::nullopt;
  const TypeRef type{found->front()};
  const auto known = info(type);
  return known && known->text == name ? std::optional(type) : std::nullopt;
}

Result<std::vector<MemberInfo>> ObjectTypes::members_of(TypeId type) const {
  auto members = graph_->members(type);
  if (members && (looked_at_ += members->size() + 1) > kMostLookedAt)
    return fail(ErrorKind::limit, "types within types without end");
  return members;
}

Result<std::optional<MemberInfo>> ObjectTypes::find_member(TypeId type, std::string_view name, unsigned depth) const {
  auto members = TRY(members_of(type));
  for (const MemberInfo& each : members)
    if (each.name == name && !each.is_base) return each;
  if (depth == kMostNested) return std::nullopt;
  // A member of something without a name is the struct's own, and hides what base classes have.
  std::optional<MemberInfo> found;
  for (const bool of_base : {false, true}) {
    for (const MemberInfo& each : members) {
      if (found && !of_base) return found;
      if (each.is_base != of_base || (!of_base && !each.name.empty())) continue;
      auto inner = TRY(find_member(each.type, name, depth + 1));
      if (!inner) continue;
      inner->offset += each.offset;
      inner->is_virtual |= each.is_virtual;
      if (inner->variant && each.variant) continue;  // of two at once nothing is told
      if (inner->variant) inner->variant->offset += each.offset;
      if (each.variant) inner->variant = each.variant;
      if (found) {
        found = TRY(one_of(*found, *inner));
      } else {
        found = std::move(inner);
      }
    }
  }
  return found;
}

/// Two members of one name, in different base classes: as in C++ neither, but for what hides that of a virtual base,
/// or is beside an object without members, as deleters and allocators are.
Result<MemberInfo> ObjectTypes::one_of(MemberInfo one, MemberInfo other) const {
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

std::vector<std::string> ObjectTypes::near_members(TypeId type, std::string_view name) const {
  NearTexts near(name);
  const auto members = members_of(type);
  if (members) {
    for (const MemberInfo& each : *members) near.offer(each.name);
  }
  return std::move(near).best();
}

}  // namespace usdt::resolve
