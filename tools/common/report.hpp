// SPDX-License-Identifier: BSD-2-Clause
// Notices of the tools: to standard error, a line each. Standard error that is full, closed or read by nobody is no
// reason to stop. Any thread may print.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "io/stream.hpp"
#include "usdt/error.hpp"

namespace usdt::tools {

/// The stream to standard error.
[[nodiscard]] io::Stream& errors();
/// How long notices wait for a reader who is asleep; before this is called, as long as it takes.
void set_patience(io::Stream::Patience patience);

/// Prints "usdt-list: message"; after it, for a syntax error in `input`, the input and a caret below its column.
void print_error(std::string_view tool, const Error& error, std::string_view input = {});
/// Prints "usdt-list: text".
void print_notice(std::string_view tool, std::string_view text);
/// Prints the text alone.
void print_notice(std::string_view text);

/// Writes "1 site", "3 sites".
[[nodiscard]] std::string counted(std::size_t n, std::string_view what);

}  // namespace usdt::tools
