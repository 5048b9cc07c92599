// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace usdt::tools {

/// `text` in lines of at most `width` columns. Lines that begin with a space stay as they are; others are paragraphs,
/// each of which ends with its newline.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t width);

/// Returns the lines of one option: its name, and behind or below that what it does, in at most `width` columns.
[[nodiscard]] std::string option_lines(std::string_view name, std::string_view text, std::size_t width);

/// Returns the formatter of --help, with lines of at most `width` columns.
[[nodiscard]] std::shared_ptr<CLI::FormatterBase> help_formatter(std::size_t width);

}  // namespace usdt::tools
