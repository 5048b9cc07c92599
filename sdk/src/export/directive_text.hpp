// SPDX-License-Identifier: BSD-2-Clause
// Numbers as the directives of a format string show them.
#pragma once

#include <cstddef>
#include <string>

#include "usdt/event.hpp"
#include "usdt/format_string.hpp"

namespace usdt::exports {

/// A number, as an integer directive shows it: `bits` of a value of `size` bytes.
[[nodiscard]] std::string integer_text(const FormatPiece& piece, const Value& value, std::size_t size);
/// A real, as "%f", "%e" and "%g" show it.
[[nodiscard]] std::string real_text(const FormatPiece& piece, double value);

}  // namespace usdt::exports
