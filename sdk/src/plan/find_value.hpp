// SPDX-License-Identifier: BSD-2-Clause
// Questions over lists of arguments that are there. Private to the library.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "usdt/expression.hpp"
#include "usdt/value_path.hpp"

namespace usdt::plan {

/// The prefix of names that mean values at the end of a span.
inline constexpr std::string_view kEndPrefix = "end.";

/// Returns what a path to a value at the end of a span is at the end itself: "*(u32 *)arg0" of "*(u32 *)end.arg0".
/// Nothing: it leads to none.
[[nodiscard]] std::optional<ValuePath> own_path_of_end(const ValuePath& path);

/// Finds the position in `args` of the value that `path` leads to; nothing: it is not there.
[[nodiscard]] std::optional<std::size_t> find_value(const std::vector<Arg>& args, const ValuePath& path);

/// Whether it may be one of an enum's values, where no argument has that name.
[[nodiscard]] bool may_be_enumerator(const ValuePath& path);

/// `question` over `args`, which have all that it is about. Errors: invalid_argument (they have not, or not so typed).
[[nodiscard]] Result<TypedExpression> typed_over(const Expression& question, const std::vector<Arg>& args);

}  // namespace usdt::plan
