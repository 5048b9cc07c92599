// SPDX-License-Identifier: BSD-2-Clause
// Rows of tables: one expression of all that is asked about a hit. Private to the library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/table.hpp"

namespace usdt::expr {

/// Which hits count (null: all), and the keys and the value of their rows, as one expression (Operator::row).
[[nodiscard]] Expression row_of(const Expression* where, const TableQuestion& table);

/// Operator::linear_bucket over an integer, by operators that there are.
[[nodiscard]] ExpressionNode linear_bucket_of_integer(const ExpressionNode& bucket);
/// The key of the one that so many of its bounds are not above.
[[nodiscard]] std::int64_t linear_bucket_number(std::size_t bounds_passed, std::size_t bounds) noexcept;

/// Where the keys are, behind usdt_row::key, and whether there is a value.
struct RowLayout {
  struct Place {
    std::uint32_t offset = 0;
    std::uint32_t size = 8;
    friend bool operator==(const Place&, const Place&) = default;
  };
  std::vector<Place> keys = {};
  std::uint32_t bytes = 0;  ///< of all keys, a multiple of 8; more than TableQuestion::kMostKeyBytes: they do not fit
  bool value = false;
};
/// Of a checked row.
[[nodiscard]] RowLayout row_layout(const TypedExpression::Node& row);

/// What the keys and the value of a row are over `args`. Errors: limit (more than TableQuestion::kMostKeyBytes).
[[nodiscard]] Result<PlannedTable> planned_table(const TypedExpression& row, const std::vector<Arg>& args,
                                                 const TableQuestion& question);
/// Why a hit has no stack, where nothing went wrong.
[[nodiscard]] std::string_view why_no_stack(HitField field) noexcept;
/// Why rows as `more` has them cannot be among those of `table`, of the same question, without being shown as something
/// else than they are; empty: they can.
[[nodiscard]] std::string why_other_rows(const PlannedTable& table, const PlannedTable& more);

}  // namespace usdt::expr
