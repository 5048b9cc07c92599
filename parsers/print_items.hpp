// SPDX-License-Identifier: BSD-2-Clause
// The items of a print list: "arg0, str(arg1, arg2), hex(count)".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tl/expected.hpp"

namespace usdt::parsers {

/// How an item of a print list writes its value: alone, or in "str()", "hex()", "ntop()", "buf()" or
/// "trace_attribute()".
enum class PrintForm : std::uint8_t { value, text, hex, address, bytes, attribute };

/// One item, whose parts are pieces of the list. They are as they were written, blanks included.
struct PrintItemText {
  PrintForm form = PrintForm::value;
  std::vector<std::string_view> values = {};  ///< the value, and where there are two its length; a key in its quotes
  std::string_view called = {};               ///< what is behind "as"; empty: nothing is
};

/// Splits a list at its commas; commas within brackets are of the values. Error: where no item begins or ends.
[[nodiscard]] tl::expected<std::vector<PrintItemText>, std::size_t> split_print_list(std::string_view list);

}  // namespace usdt::parsers
