// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/result.hpp"

namespace usdt_trace {

/// One thing to show of an event.
struct PrintItem {
  enum class Form : std::uint8_t { value, text, hex };
  Form form = Form::value;
  std::uint8_t arg = 0;
  std::string label;  ///< as written: "str(arg1)"
};
using PrintList = std::vector<PrintItem>;

/// Parses "arg0, str(arg1), hex(arg2)". Error: syntax with the column.
[[nodiscard]] usdt::Result<PrintList> parse_print_list(std::string_view text);

}  // namespace usdt_trace
