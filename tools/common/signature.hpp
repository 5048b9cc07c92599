// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "usdt/decode.hpp"

namespace usdt::tools {

/// Its type as in C, or "u64" where only its size and sign are known.
[[nodiscard]] std::string type_of(const Arg& arg);

/// `type name` as C declares it: "struct file *file", "int (*compare)(void *, void *)"; without a name the type.
[[nodiscard]] std::string declaration(std::string type, std::string_view name);
[[nodiscard]] std::string declaration(const Arg& arg);

/// "(i32, u64, f64)": the types of a site's arguments, and their names where they have some.
[[nodiscard]] std::string signature(const std::vector<Arg>& args);

}  // namespace usdt::tools
