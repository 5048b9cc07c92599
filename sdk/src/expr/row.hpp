// SPDX-License-Identifier: BSD-2-Clause
// Rows of tables: one expression of all that is asked about a hit. Private to the library.
#pragma once

#include <array>
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

/// Stands for a text among the keys of a row (Operator::fingerprint): two different mixtures of all its bytes, 16 at a
/// time with NULs behind the last, and of how many there are. 127 bits tell texts apart, one says whether it goes on.
class Fingerprint {
 public:
  /// How each mixture takes up a word: (mixture ^ word) * factor, turned to the right by 32 bits.
  static constexpr std::array<std::uint64_t, 2> kFactors{0x9e37'79b9'7f4a'7c15, 0xc2b2'ae3d'27d4'eb4f};
  static constexpr std::array<std::uint64_t, 2> kStart{0x243f'6a88'85a3'08d3, 0x1319'8a2e'0370'7344};

  void add(std::uint64_t word) noexcept;
  /// Makes the fingerprint of a whole text; `cut`: it goes on.
  [[nodiscard]] static Fingerprint of(std::string_view text, bool cut) noexcept;
  /// As the key has it: the lowest bit of the second word is set for a text that goes on.
  [[nodiscard]] TableText key() const;
  [[nodiscard]] static TableText key_of(const char* bytes);

 private:
  std::array<std::uint64_t, 2> words_ = kStart;
};

/// Says where the keys are, behind usdt_row::key, and whether there is a value.
struct RowLayout {
  struct Place {
    std::uint32_t offset = 0;
    std::uint32_t size = 8;
    friend bool operator==(const Place&, const Place&) = default;
  };
  std::vector<Place> keys = {};
  std::uint32_t bytes = 0;  ///< of all keys, a multiple of 8; more than there is room for: they do not fit
  bool value = false;
};
/// Returns the layout of a checked row, whose texts share what others leave of `key_bytes`.
[[nodiscard]] RowLayout row_layout(const TypedExpression::Node& row,
                                   std::uint32_t key_bytes = TableQuestion::kMostKeyBytes);

/// Describes the keys and the value of a row over `args`. Errors: limit (more than TableQuestion::key_bytes).
[[nodiscard]] Result<PlannedTable> planned_table(const TypedExpression& row, const std::vector<Arg>& args,
                                                 const TableQuestion& question);
/// The same of a table that the kernel makes. Errors: limit (more than TableQuestion::kMostKeyBytes), too.
[[nodiscard]] Result<PlannedTable> planned_kernel_table(const TypedExpression& row, const std::vector<Arg>& args,
                                                        const TableQuestion& question);
/// Says why a hit has no stack, where nothing went wrong.
[[nodiscard]] std::string_view why_no_stack(HitField field) noexcept;
/// Makes signed what is signed in one of two tables with equal rows and unsigned in the other, keys and the value. Rows
/// are made for it by TypedExpression::with_signs_of().
void join_signs(PlannedTable& table, const PlannedTable& more);
/// Says why rows as `more` has them cannot be among those of `table`, of one question, without being shown as something
/// else than they are; empty: they can.
[[nodiscard]] std::string why_other_rows(const PlannedTable& table, const PlannedTable& more);

/// Gives the integers of a row the signs that the columns of `table` have (TypedExpression::with_signs_of()); what is
/// no row stays.
void take_signs(TypedExpression::Node& row, const PlannedTable& table);

}  // namespace usdt::expr
