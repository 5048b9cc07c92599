// SPDX-License-Identifier: BSD-2-Clause
// Finds the texts that a question is about. Private to the library.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "usdt/arg.hpp"
#include "usdt/expression.hpp"

namespace usdt::expr {

/// A text, by the position of the value that points to it among the arguments.
struct AskedText {
  std::uint8_t text = 0;
  std::optional<std::uint8_t> length = {};  ///< the position of its length; nothing: it ends at its NUL
  friend bool operator==(const AskedText&, const AskedText&) = default;
};

/// Returns the texts that are known where a call begins, each once: the others are results, or have one for a length.
[[nodiscard]] std::vector<AskedText> texts_of_beginning(const TypedExpression& question, const std::vector<Arg>& args);

}  // namespace usdt::expr
