// SPDX-License-Identifier: BSD-2-Clause
// Bytes of other programs on their way into JSON strings, which must be UTF-8 (RFC 8259 section 8.1).
#pragma once

#include <string>
#include <string_view>

namespace usdt::tools {

/// True for well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF).
[[nodiscard]] bool is_utf8(std::string_view bytes) noexcept;
/// Every byte that is not part of a well-formed sequence becomes U+FFFD.
[[nodiscard]] std::string replace_invalid_utf8(std::string_view bytes);
/// Without the beginning of a sequence that a cut left at the end.
[[nodiscard]] std::string_view without_partial_utf8(std::string_view bytes) noexcept;

}  // namespace usdt::tools
