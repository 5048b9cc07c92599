// SPDX-License-Identifier: BSD-2-Clause
// Bytes of other programs on their way into JSON strings, which must be UTF-8 (RFC 8259 section 8.1).
#pragma once

#include <cstddef>
#include <string_view>

namespace usdt::tools {

/// Length of the well-formed sequence at the start of `bytes` (RFC 3629: no overlong forms, no surrogates, at most
/// U+10FFFF), 0 if there is none.
[[nodiscard]] std::size_t utf8_sequence(std::string_view bytes) noexcept;
/// Without the beginning of a sequence that a cut left at the end.
[[nodiscard]] std::string_view without_partial_utf8(std::string_view bytes) noexcept;

}  // namespace usdt::tools
