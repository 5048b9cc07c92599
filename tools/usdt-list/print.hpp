// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string_view>

#include "io/stream.hpp"
#include "usdt/usdt.hpp"

namespace usdt_list {

/// Prints one line for each probe of `file`; verbosity 1 adds what its sites share, 2 every site with every argument.
/// Aligned in columns on a terminal, below a heading if `heading`, tab-separated otherwise.
void print_text(const usdt::ProbeFile& file, int verbosity, bool heading, usdt::io::Stream& out);

/// Prints one object for each site, a line each: the JSON contract of usdt-list, version 1 (docs/json.md).
void print_json(const usdt::ProbeFile& file, usdt::io::Stream& out);

/// Returns the exit code after a failed write to standard output, and says so, unless nobody reads any more.
[[nodiscard]] int output_failed(const usdt::io::Stream& out);

/// Prints a line about a probe or function below its own: `label`, and `text`.
inline void print_detail(usdt::io::Stream& out, std::string_view label, std::string_view text) {
  out.print("  {:<10} {}\n", label, text);
}

}  // namespace usdt_list
