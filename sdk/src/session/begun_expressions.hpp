// SPDX-License-Identifier: BSD-2-Clause
// The beginning that "elapsed" counts from, in what is asked. Private to the library.
#pragma once

#include <cstdint>
#include <memory>

#include "usdt/expression.hpp"
#include "usdt/print_list.hpp"

namespace usdt::session {

/// Returns the expression with another beginning, ns of event_clock(); null: there is none.
[[nodiscard]] inline std::shared_ptr<const Expression> begun_at(const std::shared_ptr<const Expression>& expression,
                                                                std::uint64_t nanoseconds) {
  if (!expression) return nullptr;
  auto begun = std::make_shared<Expression>(*expression);
  begun->began = nanoseconds;
  return begun;
}

/// Gives it to what a list computes.
inline void begin_list(PrintList& list, std::uint64_t nanoseconds) {
  for (PrintItem& item : list) item.computed = begun_at(item.computed, nanoseconds);
}

}  // namespace usdt::session
