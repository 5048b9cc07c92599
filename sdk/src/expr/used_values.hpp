// SPDX-License-Identifier: BSD-2-Clause
// Values of a site that an expression reads. Private to expr/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "usdt/arg.hpp"
#include "usdt/expression.hpp"
#include "usdt/result.hpp"

namespace usdt::expr {

/// Collects the values that an expression reads, each once, and gives them numbers.
class UsedValues {
 public:
  /// `args` are the site's, and live as long.
  explicit UsedValues(const std::vector<Arg>& args) : args_(args) {}

  /// Returns the number of argument `position` among the values that are read, with which it takes up what it takes to
  /// know an element of a list. Errors name it by `name`, at `node`.
  [[nodiscard]] Result<std::uint8_t> use(std::size_t position, const std::string& name, const ExpressionNode& node);

  /// The positions of what is read, by numbers.
  [[nodiscard]] const std::vector<std::uint8_t>& positions() const noexcept { return positions_; }
  [[nodiscard]] const std::vector<TypedExpression::OfList>& of_lists() const noexcept { return of_lists_; }

 private:
  const std::vector<Arg>& args_;
  std::vector<std::uint8_t> positions_;
  std::vector<TypedExpression::OfList> of_lists_;
};

}  // namespace usdt::expr
