// SPDX-License-Identifier: BSD-2-Clause
// The names that V8 gives to functions of JavaScript in a perf map: "JS:*total /srv/cart.js:12:8". Private to stack/.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "usdt/stack.hpp"

namespace usdt::stack {

/// What V8 says of a function. File and line are those of its definition.
struct V8Name {
  CodeTier tier = CodeTier::unknown;
  std::string_view function = {};  ///< empty: it has no name
  std::string_view file = {};      ///< empty: code of eval(), or `function` has all that is known
  std::uint32_t line = 0;          ///< 0: not known
  std::uint32_t column = 0;        ///< 0: not known (V8 before 11)
};

/// Takes the name of a line apart. Nothing: it is of no function of JavaScript. Names and files may have spaces; where
/// it cannot be told which space is between the two, `function` has both of them, and there are neither file nor line.
[[nodiscard]] std::optional<V8Name> parse_v8_name(std::string_view name);
/// Whether V8 wrote it: of a function of JavaScript, or of the code around such functions.
[[nodiscard]] bool is_v8_name(std::string_view name);

}  // namespace usdt::stack
