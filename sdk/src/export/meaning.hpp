// SPDX-License-Identifier: BSD-2-Clause
// Numbers as their provider means them (docs/provider-note.md): "ENOENT", "1.25 ms".
#pragma once

#include <optional>
#include <string>

#include "usdt/arg.hpp"
#include "usdt/event.hpp"

namespace usdt::exports {

/// `value` of `arg` as people read it; nothing where its declaration has no meaning and no unit, or none known here.
/// The unit is the provider's own text.
[[nodiscard]] std::optional<std::string> text_by_meaning(const Arg& arg, const Value& value);

}  // namespace usdt::exports
