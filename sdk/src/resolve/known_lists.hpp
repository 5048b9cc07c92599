// SPDX-License-Identifier: BSD-2-Clause
// Lists that libraries keep as the address of their elements and a length, or as two addresses. How many elements there
// are is known at the hit only: the length is read with the elements, and whoever shows them compares. Private to
// resolve/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "resolve/value_list.hpp"

namespace usdt::resolve {

/// Elements of some library that are kept elsewhere.
struct List {
  std::shared_ptr<const ListLength> length;
  Number first;  ///< the address of the first element
  TypeRef element;
};

/// Returns the array that a std::array is; any other object is itself.
[[nodiscard]] Object without_wrapper(const ObjectTypes& types, Object object);
/// Returns the list that `object` is; nothing: none that is known.
[[nodiscard]] std::optional<List> list_of(const ObjectTypes& types, const Object& object);
/// Returns element `index` of `list`, which `object` is.
[[nodiscard]] Object element_of(const Object& object, const List& list, std::uint64_t index);

/// Shows `object` with `most` elements at most, if it is a list or a known one whose elements cannot be shown; false:
/// it is neither.
[[nodiscard]] Result<bool> show_known_list(ValueList& list, const Object& object, unsigned most, const ListPosition& to,
                                           const ShowPart& show);

}  // namespace usdt::resolve
