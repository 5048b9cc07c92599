// SPDX-License-Identifier: BSD-2-Clause
// Numbers as their provider means them (docs/provider-note.md): "ENOENT", "1.25 ms".
#pragma once

#include <optional>
#include <string>

#include "usdt/usdt.hpp"

namespace usdt::tools {

/// `value` of `arg` as people read it; nothing where its declaration has no meaning and no unit, or none known here.
/// The unit is the provider's own text.
[[nodiscard]] std::optional<std::string> text_by_meaning(const Arg& arg, const Value& value);

/// "850ns", "12.345us", "3.75ms", "1.5s".
[[nodiscard]] std::string duration_text(double nanoseconds);

}  // namespace usdt::tools
