// SPDX-License-Identifier: BSD-2-Clause
// Kernel BTF as a TypeGraph.
#pragma once

#include <cstdint>
#include <memory>

#include "btf/types.hpp"
#include "usdt/type_graph.hpp"

namespace usdt::btf {

/// Ids are those of BTF: id_of(ValueType::type_id) is what a prototype has. Of a module, its base's types are its own.
class Graph final : public TypeGraph {
 public:
  explicit Graph(std::shared_ptr<const Types> types) noexcept : owner_(std::move(types)), types_(*owner_) {}
  /// `types` must outlive the graph.
  explicit Graph(const Types& types) noexcept : types_(types) {}

  [[nodiscard]] static constexpr TypeId id_of(std::uint32_t btf_id) noexcept {
    return btf_id == 0 ? TypeId::none : static_cast<TypeId>(btf_id);
  }

  [[nodiscard]] Result<TypeInfo> info(TypeId type) const override;
  [[nodiscard]] Result<std::vector<MemberInfo>> members(TypeId type) const override;
  [[nodiscard]] std::vector<Enumerator> enumerators(TypeId type) const override;
  [[nodiscard]] Result<std::vector<TypeId>> find_all(std::string_view name) const override;

 private:
  /// Bytes of the type behind typedefs; 0: none, or not known.
  [[nodiscard]] std::uint64_t size_of(std::uint32_t id) const;
  [[nodiscard]] Result<std::uint32_t> resolved(std::uint32_t id) const;
  [[nodiscard]] Result<MemberInfo> member(const btf_type& outer, std::size_t index) const;
  template <class Visit>
  void for_each_type(Visit&& visit) const;
  [[nodiscard]] bool is_copy(const std::vector<std::uint32_t>& found, std::uint32_t id) const;

  std::shared_ptr<const Types> owner_;
  const Types& types_;
};

}  // namespace usdt::btf
