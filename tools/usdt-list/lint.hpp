// SPDX-License-Identifier: BSD-2-Clause
// Faults of a file's probes, for its maker to mend before others trace it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "flags.hpp"
#include "io/stream.hpp"
#include "usdt/usdt.hpp"

namespace usdt_list {

/// Something about a probe that its author should mend or know.
struct Finding {
  std::string_view rule;             ///< "phantom": of docs/guide/list.md
  bool fault = true;                 ///< else merely worth knowing
  std::string probe;                 ///< "usdt:PATH:PROVIDER:NAME"
  const usdt::Site* site = nullptr;  ///< one of it
  std::string text;
};

/// Returns the findings about the sites of `file`, in their order. Views them.
[[nodiscard]] std::vector<Finding> lint(const usdt::ProbeFile& file);

/// Prints the findings of `file` and how large its notes are; returns the number of faults.
std::size_t print_lint(const usdt::ProbeFile& file, Format format, usdt::io::Stream& out);

}  // namespace usdt_list
