// SPDX-License-Identifier: BSD-2-Clause
// Arguments as C declares them, for people: "struct file *file", "(i32, u64)".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "usdt/decode.hpp"

namespace usdt {
inline namespace v1 {

/// Returns the type of an argument as in C, or "u64" where only its size and sign are known.
[[nodiscard]] std::string c_type_text(const Arg& arg);

/// Returns `type name` as C declares it: "struct file *file", "int (*compare)(void *, void *)"; without a name the
/// type.
[[nodiscard]] std::string declaration_text(std::string type, std::string_view name);
/// Returns the declaration of an argument: its type and its name.
[[nodiscard]] std::string declaration_text(const Arg& arg);

/// Returns "(i32, u64, f64)": the types of a site's arguments, and their names where they have some.
[[nodiscard]] std::string signature_text(const std::vector<Arg>& args);

}  // namespace v1
}  // namespace usdt
