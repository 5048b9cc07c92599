// SPDX-License-Identifier: BSD-2-Clause
// Text that others wrote (file names, probe names, comm, strings of traced programs, error texts that quote them), made
// safe for a terminal and for JSON. Stream applies it to everything a tool writes.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace usdt::io {

/// True for text that printable() would leave as it is.
[[nodiscard]] bool is_printable(std::string_view text) noexcept;

/// Escapes text for a terminal and for line-based tools: control characters (C0, DEL, C1), line separators, characters
/// that turn the direction of writing (Unicode TR #36, section 3.2) and bytes that are not UTF-8 become \n, \t, \xHH or
/// \uHHHH. Its own results stay as they are.
[[nodiscard]] std::string printable(std::string_view text);

/// printable() with a second backslash beside each: no two texts are shown alike.
[[nodiscard]] std::string escaped(std::string_view text);

/// True for text that valid_utf8() would leave as it is.
[[nodiscard]] bool is_valid_utf8(std::string_view text) noexcept;

/// The text for formats that have escapes of their own, or need none: only bytes that are not UTF-8, and NUL, where
/// many readers would end, become U+FFFD and two hexadecimal digits. The bytes of U+FFFD itself become the same, so
/// that no two texts are written alike. May hold control characters: it is not for terminals.
[[nodiscard]] std::string valid_utf8(std::string_view text);

/// How others' text is written.
enum class Escapes : std::uint8_t {
  controls,         ///< printable(): its results stay as they are, and a backslash may be anybody's
  all,              ///< escaped()
  only_what_is_odd  ///< valid_utf8()
};
[[nodiscard]] bool needs_escapes(std::string_view text, Escapes escapes) noexcept;
[[nodiscard]] std::string with_escapes(std::string_view text, Escapes escapes);

/// printable() in double quotes, with a backslash before quotes and backslashes.
[[nodiscard]] std::string quoted(std::string_view text);

/// Appends a finished JSON text to `out`. Characters that JSON allows in strings and printable() escapes become \uHHHH,
/// and bytes that are not UTF-8 become U+FFFD.
void append_json(fmt::memory_buffer& out, std::string_view json);

}  // namespace usdt::io
