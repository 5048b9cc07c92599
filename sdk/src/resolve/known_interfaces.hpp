// SPDX-License-Identifier: BSD-2-Clause
// Interfaces of Go: which type their value has, by the addresses that stand for types, and what is known of the value.
// Private to resolve/.
#pragma once

#include "resolve/value_list.hpp"

namespace usdt::resolve {

/// Shows `object` by its type and its value; false: it is no interface.
[[nodiscard]] Result<bool> show_known_interface(ValueList& list, const Object& object, const TypeInfo& type,
                                                const ListPosition& to, const ShowPart& show);

}  // namespace usdt::resolve
