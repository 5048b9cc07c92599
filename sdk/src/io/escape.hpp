// SPDX-License-Identifier: BSD-2-Clause
// Text that others wrote (file names, probe names, comm, strings of traced programs, error texts that quote them), made
// safe for a terminal and for JSON. Stream applies it to everything a tool writes.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace usdt::io {

/// True for text that printable() would leave as it is.
[[nodiscard]] bool is_printable(std::string_view text) noexcept;

/// Escapes text for a terminal and for line-based tools: control characters (C0, DEL, C1), line separators, characters
/// that turn the direction of writing (Unicode TR #36, section 3.2) and bytes that are not UTF-8 become \n, \t, \xHH or
/// \uHHHH. Its own results stay as they are.
[[nodiscard]] std::string printable(std::string_view text);

/// printable() in double quotes, with a backslash before quotes and backslashes.
[[nodiscard]] std::string quoted(std::string_view text);

/// Appends a finished JSON text to `out`. Characters that JSON allows in strings and printable() escapes become \uHHHH,
/// and bytes that are not UTF-8 become U+FFFD.
void append_json(fmt::memory_buffer& out, std::string_view json);

}  // namespace usdt::io
