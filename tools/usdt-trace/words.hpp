// SPDX-License-Identifier: BSD-2-Clause
// Words of questions (usdt::HitField) among what is shown of events: "pid", "elapsed", "ip".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "usdt/usdt.hpp"

namespace usdt_trace {

/// The word that a path is; nothing: it names a value.
[[nodiscard]] std::optional<usdt::HitField> word_of(const usdt::ValuePath& path);
/// Whether it is a text.
[[nodiscard]] bool is_text(usdt::HitField word) noexcept;
/// Why it cannot be shown of an event; empty: it can.
[[nodiscard]] std::string_view why_not_shown(usdt::HitField word) noexcept;

/// What a word is of one event.
using WordValue = std::variant<std::uint64_t, std::string, usdt::ArgError>;
/// As questions have it: of calls and spans `nsecs` and `elapsed` are of their end. `began`: Flags::began; `probe`: the
/// name of the event's.
[[nodiscard]] WordValue word_value(usdt::HitField word, const usdt::Event& event, std::uint64_t began,
                                   std::string_view probe);
/// A number as lines show it: times with a unit, addresses in hexadecimal.
[[nodiscard]] std::string word_text(usdt::HitField word, std::uint64_t number);

}  // namespace usdt_trace
