// SPDX-License-Identifier: BSD-2-Clause
// Quotes and backslashes in the parts of a pattern.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace usdt {
inline namespace v1 {

/// Length of the text in double quotes that `text` starts with, quotes included; 0: it starts with none.
[[nodiscard]] std::size_t quoted_length(std::string_view text) noexcept;
/// Returns the text that a whole text in double quotes stands for; nullopt: it is not in quotes.
[[nodiscard]] std::optional<std::string> unquoted(std::string_view text);
/// "\n", "\t" and "\xHH" are the newline, the tab and the byte of that number; "\c" is any other character itself.
[[nodiscard]] std::string without_backslashes(std::string_view text);
/// A provider or name of a pattern as a glob: quotes and numbered characters become backslashes.
[[nodiscard]] std::string glob_of_part(std::string_view part);
/// `path` as a target that means it alone: as it is, or in double quotes where a character of it means something to a
/// pattern or a shell, or cannot be shown.
[[nodiscard]] std::string quote_target(std::string_view path);
/// A provider or name as a pattern that means it alone.
[[nodiscard]] std::string quote_name(std::string_view name);
/// The same of a function, whose name may have "::" in it: in double quotes where that is needed.
[[nodiscard]] std::string quote_function(std::string_view name);

}  // namespace v1
}  // namespace usdt
