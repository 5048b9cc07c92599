// SPDX-License-Identifier: BSD-2-Clause
// Texts: arrays of characters, and what libraries keep as a pointer and a length. Private to resolve/.
#pragma once

#include <string>

#include "resolve/value_list.hpp"

namespace usdt::resolve {

/// Shows `object` as a text, with its length; false: it is none that is known.
[[nodiscard]] Result<bool> show_known_text(ValueList& list, const Object& object, const TypeInfo& type,
                                           const ListPosition& to);

/// Says why the bytes that `pointer`, written as `text`, points to are no text: the first bytes of a std::string are
/// none, though a pointer to it is one to memory. Empty: nothing is against it.
[[nodiscard]] std::string why_no_text(const ObjectTypes& types, const Object& pointer, const std::string& text);

}  // namespace usdt::resolve
