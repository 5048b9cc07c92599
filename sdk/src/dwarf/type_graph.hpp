// SPDX-License-Identifier: BSD-2-Clause
// The types of debug information as a TypeGraph. Private to dwarf/.
#pragma once

#include <memory>

#include "dwarf/debug_state.hpp"
#include "dwarf/types.hpp"

namespace usdt::dwarf {

/// Ids stand for DIEs, and for what is behind an array's first dimensions (KnownTypes); all graphs of one
/// DebugInfo have the same. A struct that a unit only declares is the definition that the file has elsewhere.
class DwarfTypes final : public TypeGraph {
 public:
  explicit DwarfTypes(std::shared_ptr<DebugState> state)
      : state_(std::move(state)),
        types_(state_->names, state_->files.arch, [of = state_.get()] { return of->code_names().has_quads(); }) {}

  [[nodiscard]] Result<TypeInfo> info(TypeId type) const override;
  [[nodiscard]] Result<std::vector<MemberInfo>> members(TypeId type) const override;
  [[nodiscard]] std::vector<Enumerator> enumerators(TypeId type) const override;
  [[nodiscard]] std::vector<TypeId> template_types(TypeId type) const override;
  [[nodiscard]] Result<std::vector<DynamicType>> dynamic_types(bool errors) const override;
  [[nodiscard]] Result<std::vector<TypeId>> find_all(std::string_view name) const override;
  [[nodiscard]] Result<TypeId> find_beside(std::string_view name, TypeId beside) const override;

 private:
  /// Without typedefs and qualifiers, and defined if it is anywhere; nothing: void. Errors: invalid_argument,
  /// malformed.
  [[nodiscard]] Result<std::optional<KnownType>> meant(TypeId type) const;
  [[nodiscard]] Dwarf_Die defined(Dwarf_Die die) const;
  [[nodiscard]] TypeInfo results_info(Dwarf_Die function) const;
  [[nodiscard]] Result<const TypeNames*> names() const;
  /// The names of the types in the unit of `type`; null: it is not known, or cannot be read.
  [[nodiscard]] const TypeNames* names_beside(TypeId type) const;
  [[nodiscard]] bool is_meant_alike(TypeId one, TypeId other) const;
  [[nodiscard]] Error broken(std::string_view what) const;
  [[nodiscard]] Result<MemberInfo> member(Dwarf_Die die, std::uint64_t outer_size, bool swapped) const;
  [[nodiscard]] Result<void> add_variants(Dwarf_Die part, std::uint64_t outer_size, std::vector<MemberInfo>& all) const;
  [[nodiscard]] Result<void> place_bits(MemberInfo& member, Dwarf_Die die, std::uint64_t outer_size) const;

  std::shared_ptr<DebugState> state_;
  Types types_;
};

}  // namespace usdt::dwarf
