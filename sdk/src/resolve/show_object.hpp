// SPDX-License-Identifier: BSD-2-Clause
// Objects shown by arguments of their own: structs by members, arrays and lists by elements, texts by their length.
// Private to resolve/.
#pragma once

#include <cstddef>
#include <optional>

#include "resolve/value_list.hpp"

namespace usdt::resolve {

/// How much of what is no number is shown.
struct Depth {
  unsigned structures = 1;  ///< structs within structs that are shown with their members; 0: none is
  /// The most members of one argument. Where programs look specs up, each costs the verifier 17,000 instructions
  /// (6.18), of at most a million.
  unsigned members = 48;
  unsigned elements = 8;  ///< of one array, at most
};

/// Shows objects in a list of arguments.
class ObjectShower {
 public:
  /// `list` lives as long.
  ObjectShower(ValueList& list, const Depth& depth) : list_(list), depth_(depth) {}

  /// Appends `object`, or makes it argument `at`, and what belongs to it.
  [[nodiscard]] Result<void> show(Object object, std::optional<std::size_t> at) {
    return show(std::move(object), depth_.structures, {.at = at});
  }
  /// Makes argument `at` of `object` where that is a text, list, alternative or interface that is known; else does
  /// nothing.
  [[nodiscard]] Result<void> show_known(const Object& object, const TypeInfo& type, std::size_t at);

 private:
  [[nodiscard]] Result<void> show(Object object, unsigned depth, const ListPosition& to);
  [[nodiscard]] Result<void> show_number(const Object& object, TypeInfo type, const ListPosition& to);
  [[nodiscard]] Result<void> show_number_parts(const Object& object, const TypeInfo& type, const ListPosition& to);
  [[nodiscard]] Result<bool> show_known(const Object& object, const TypeInfo& type, unsigned depth,
                                        const ListPosition& to);
  [[nodiscard]] Result<void> show_whole(const Object& object, const TypeInfo& type, unsigned depth,
                                        const ListPosition& to);
  [[nodiscard]] Result<void> show_elements(const Object& object, const TypeInfo& type, unsigned depth,
                                           std::uint8_t whole);
  [[nodiscard]] Result<void> show_characters(const Object& object, const TypeInfo& type, std::uint8_t whole);
  [[nodiscard]] bool has_characters(const TypeInfo& array) const;
  /// Shows parts with structs within each other that are so deep.
  [[nodiscard]] ShowPart part_shower(unsigned depth);

  ValueList& list_;
  Depth depth_;
};

}  // namespace usdt::resolve
