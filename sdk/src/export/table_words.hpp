// SPDX-License-Identifier: BSD-2-Clause
// Rows of tables in words and numbers that people read.
#pragma once

#include <string>

#include "usdt/plan.hpp"
#include "usdt/view.hpp"

namespace usdt::exports {

/// "1234", "56.7", "0.42": hits a second.
[[nodiscard]] std::string rate_text(double per_second);

/// "COUNT", "SUM(size)"
[[nodiscard]] std::string header_of(RowNumber shown, const View& view);
/// A number of a row as programs read it: exact, reals as short as they read back.
[[nodiscard]] std::string number_text(RowNumber shown, const ArrangedRow& row);
/// A number of a row for people: durations with their unit.
[[nodiscard]] std::string shown_number(RowNumber shown, const View& view, const ArrangedRow& row);
/// The name that a key has which is a number: of a value of an enum, say. Empty: it has none.
[[nodiscard]] std::string_view name_of_key(const TableColumn& column, const TableKey& key);
/// A key for people; text as it is, for output to make safe.
[[nodiscard]] std::string key_text(const AttachPlan& plan, const TableColumn& column, const TableKey& key);
/// A key for other programs: text as it is, without quotes.
[[nodiscard]] std::string plain_key_text(const AttachPlan& plan, const TableColumn& column, const TableKey& key);
/// "[4K, 8K)", "(..., 0)", "(-16, -8]"
[[nodiscard]] std::string range_text(const View& view, const BucketRange& range);

}  // namespace usdt::exports
