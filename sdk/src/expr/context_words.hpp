// SPDX-License-Identifier: BSD-2-Clause
// The words that are numbers of a trace: texts of hexadecimal digits to people, and bytes to programs. Private to the
// library.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "usdt/hit_field.hpp"

namespace usdt::expr {

/// Whether a field is one of them: trace_id, span_id.
[[nodiscard]] constexpr bool is_context_word(HitField field) noexcept {
  return info_of(field).source == HitFieldSource::context;
}
/// Bytes that programs compare, whatever the field has of them.
inline constexpr std::size_t kContextBytes = 16;

/// Returns the bytes of the digits, with zeros behind; of no digits zeros. Nothing: they are no number of the field.
[[nodiscard]] std::optional<std::string> context_bytes(HitField field, std::string_view digits);
/// Returns the digits of such bytes; of zeros none.
[[nodiscard]] std::string context_digits(HitField field, std::string_view bytes);
/// How many digits it has.
[[nodiscard]] constexpr std::size_t digits_of(HitField field) noexcept { return field == HitField::trace_id ? 32 : 16; }

}  // namespace usdt::expr
