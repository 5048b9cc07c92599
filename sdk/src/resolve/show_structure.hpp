// SPDX-License-Identifier: BSD-2-Clause
// Structs shown by their members, those of anonymous ones and base classes among them. Private to resolve/.
#pragma once

#include "resolve/value_list.hpp"

namespace usdt::resolve {

/// Shows `most` members at most of `object`, a struct that is in the list at `whole`, and says how many are left out.
[[nodiscard]] Result<void> show_structure(ValueList& list, const Object& object, std::uint8_t whole, unsigned most,
                                          const ShowPart& show);

}  // namespace usdt::resolve
