// SPDX-License-Identifier: BSD-2-Clause
// Numbers as their provider means them (docs/provider-note.md): "ENOENT", "1.25 ms".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "usdt/arg.hpp"
#include "usdt/event.hpp"

namespace usdt::exports {

/// A number like `arg` with the meaning that a list gives it.
[[nodiscard]] Arg called_so(const Arg& arg, const Declaration& called);
/// `value` of `arg` as people read it; nothing where its declaration has no meaning and no unit, or none known here.
/// The unit is the provider's own text.
[[nodiscard]] std::optional<std::string> text_by_meaning(const Arg& arg, const Value& value);

/// The meaning of an address that stands for a type of Go, by whose name it is shown.
inline constexpr std::string_view kTypeMeaning = "type";

/// The name that a number has: of a value of an enum, or as its provider says. Empty: it has none.
[[nodiscard]] std::string_view name_of_number(const Arg& arg, const Value& value);

}  // namespace usdt::exports
