// SPDX-License-Identifier: BSD-2-Clause
// Rows in RowBinaryWithNamesAndTypes as lines of JSON (JSONEachRow), which servers of all ages read.
#pragma once

#include <string>
#include <string_view>

#include "usdt/result.hpp"

namespace usdt::exports::clickhouse {

/// Returns a line for each row, with all of its columns. `rows`: what header_of() and append_values() made. A real that
/// JSON has no number for is "inf", "-inf" or "nan", a time its nanoseconds. Errors: malformed (the rows end too early,
/// or have a type that no table of ours has).
[[nodiscard]] Result<std::string> json_rows(std::string_view rows);

}  // namespace usdt::exports::clickhouse
