// SPDX-License-Identifier: BSD-2-Clause
// Types of the objects that paths lead to: those of a graph (DWARF, BTF), pointers to them, and C's own.
// Private to resolve/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arch/arch.hpp"
#include "resolve/basic_types.hpp"
#include "usdt/result.hpp"
#include "usdt/type_graph.hpp"

namespace usdt::resolve {

/// Anonymous structs and base classes within each other, at most.
inline constexpr unsigned kMostNested = 16;

/// A type, or so many pointers to it, which casts name.
struct TypeRef {
  TypeId id = TypeId::none;
  unsigned pointers = 0;
  const BasicType* basic = nullptr;  ///< the type, where `id` is none

  [[nodiscard]] bool is_known() const noexcept { return id != TypeId::none || basic != nullptr; }
};

/// Returns the type that `type`, of which `known` is the info, points to, or is an array of.
[[nodiscard]] TypeRef target_of(const TypeRef& type, const TypeInfo& known) noexcept;

/// Answers what types are, for one machine, and bounds how much of them is looked at.
class ObjectTypes {
 public:
  /// `graph` lives as long; null: only C's own types are known. `beside`: a type that the source has where the objects
  /// are, whose unit knows what is meant by a name.
  ObjectTypes(const TypeGraph* graph, const arch::Arch& arch, TypeId beside)
      : graph_(graph), arch_(arch), beside_(beside) {}

  /// The graph; null: there is none.
  [[nodiscard]] const TypeGraph* graph() const noexcept { return graph_; }
  [[nodiscard]] const arch::Arch& arch() const noexcept { return arch_; }
  /// A type of the graph, in whose source a name means what it does beside the objects; none: there is none.
  [[nodiscard]] TypeId beside() const noexcept { return beside_; }

  [[nodiscard]] Result<TypeInfo> info(const TypeRef& type) const;
  /// The type that a cast calls so.
  [[nodiscard]] Result<TypeRef> named(const std::string& name) const;
  /// The type that has this name and no other that it might be meant for.
  [[nodiscard]] std::optional<TypeRef> named_exactly(std::string_view name) const;
  [[nodiscard]] Result<std::vector<MemberInfo>> members_of(TypeId type) const;
  /// The member of that name, also one of anonymous members and base classes; nothing: there is none.
  [[nodiscard]] Result<std::optional<MemberInfo>> find_member(TypeId type, std::string_view name) const {
    return find_member(type, name, 0);
  }
  /// Names of members that `name` may be a mistake for.
  [[nodiscard]] std::vector<std::string> near_members(TypeId type, std::string_view name) const;

 private:
  [[nodiscard]] Result<std::optional<MemberInfo>> find_member(TypeId type, std::string_view name, unsigned depth) const;
  [[nodiscard]] Result<MemberInfo> one_of(MemberInfo one, MemberInfo other) const;

  const TypeGraph* graph_;
  const arch::Arch& arch_;
  TypeId beside_;
  mutable std::uint64_t looked_at_ = 0;
};

}  // namespace usdt::resolve
