// SPDX-License-Identifier: BSD-2-Clause
// What is said of one argument or value (docs/provider-note.md, type 2): "sql:string", "took:duration[us]",
// "state:{0=idle, 1=busy}".
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/result.hpp"
#include "usdt/type.hpp"

namespace usdt::parsers {

/// Splits a text at the commas that are in no brackets, string or character. The parts have no blanks around them.
[[nodiscard]] std::vector<std::string_view> split_items(std::string_view text);
[[nodiscard]] bool is_identifier(std::string_view text);

/// Returns how many bytes the item takes that a text begins with: up to a comma in no brackets.
[[nodiscard]] std::size_t declared_length(std::string_view text) noexcept;

/// Reads one item. Errors: invalid_argument (no name; names of numbers that are none, or of one number twice); limit.
[[nodiscard]] Result<Declaration> parse_declared(std::string_view item);
/// Reads what of an item can be read. The others of its parts are empty.
[[nodiscard]] Declaration read_declared(std::string_view item);
/// Writes an item that parse_declared() reads.
[[nodiscard]] std::string declared_text(const Declaration& declaration);

/// Reads an item that a question has behind "as": what a value of it is called, and what its number means. Errors:
/// those of parse_declared(), and invalid_argument (a meaning that only providers can give).
[[nodiscard]] Result<std::shared_ptr<const Declaration>> parse_called(std::string_view item);
/// Whether it says of a number what it means, and not only how it is called.
[[nodiscard]] bool has_meaning(const Declaration& declaration) noexcept;
/// Applies a meaning to a type: what a pointer points to, that a number is true or false, or one of several with names.
/// What cannot be of that type is taken out of the declaration.
void set_meaning(Type& type, Declaration& declaration);

}  // namespace usdt::parsers
