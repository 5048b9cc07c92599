// SPDX-License-Identifier: BSD-2-Clause
// Types of C++'s library of which only parts are known, or are there only at times: std::optional, std::variant,
// containers that keep their elements in nodes. Private to resolve/.
#pragma once

#include <optional>
#include <string_view>

#include "resolve/value_list.hpp"

namespace usdt::resolve {

/// Finds what is written like a member of a type that is known: "value", "index", "size".
[[nodiscard]] std::optional<Object> known_member(const ObjectTypes& types, const Object& object, const TypeInfo& type,
                                                 std::string_view name);

/// Shows what is known of `object`; false: it is of no such type.
[[nodiscard]] Result<bool> show_known_alternatives(ValueList& list, const Object& object, const TypeInfo& type,
                                                   const ListPosition& to, const ShowPart& show);

}  // namespace usdt::resolve
