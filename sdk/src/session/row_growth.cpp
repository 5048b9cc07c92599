// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/view.hpp"

namespace usdt {
inline namespace v1 {
namespace {

/// Returns the number whose growth is told.
double number_of(const ArrangedRow& row) {
  if (!row.type) return static_cast<double>(row.count);
  return row.real(RowNumber::sum).value_or(static_cast<double>(row.sum));
}

}  // namespace

double RowGrowth::of(const ArrangedRow& row) const {
  const auto known = before_.find(row.keys);
  return number_of(row) - (known == before_.end() ? 0 : known->second);
}

void RowGrowth::keep(const std::vector<ArrangedRow>& rows) {
  before_.clear();
  for (const ArrangedRow& row : rows) before_[row.keys] = number_of(row);
  if (!first_) first_ = before_;
}

}  // namespace v1
}  // namespace usdt
