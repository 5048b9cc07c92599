// SPDX-License-Identifier: BSD-2-Clause
#include "common/report.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "common/terminal.hpp"

namespace usdt::tools {

void print_error(std::string_view tool, const Error& error, std::string_view input) {
  print_notice(tool, error.message);
  if (!error.column || input.empty()) return;
  // Escapes before the column move the caret along.
  const std::size_t column = printable(input.substr(0, *error.column)).size();
  fmt::print(stderr, "  {}\n  {:>{}}\n", printable(input), '^', column + 1);
}

void print_notice(std::string_view tool, std::string_view text) {
  fmt::print(stderr, "{}: {}\n", tool, printable(text));
}

std::string counted(std::size_t n, std::string_view what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

}  // namespace usdt::tools
