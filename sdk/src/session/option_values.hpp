// SPDX-License-Identifier: BSD-2-Clause
// Numbers and times as people write them in values of options.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace usdt::session {

/// Returns the number that all of `text` is; nothing: it is none, or does not fit.
template <class Number>
[[nodiscard]] std::optional<Number> read_number(std::string_view text) {
  Number number = {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

/// Returns the seconds of a time up to a century: "5", "0.25", "500ms", "2s", "5m", "24h", also "us" and "ns".
[[nodiscard]] std::optional<double> read_seconds(std::string_view text);

}  // namespace usdt::session
