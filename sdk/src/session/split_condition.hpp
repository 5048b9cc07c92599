// SPDX-License-Identifier: BSD-2-Clause
// A condition whose first part the kernel decides, and what is left of it of events. Private to session/.
#pragma once

#include <memory>

#include "usdt/expression.hpp"
#include "usdt/question.hpp"

namespace usdt::session {

/// The operands of "&&" of a condition; null: none are of that kind.
struct SplitCondition {
  std::shared_ptr<const Expression> of_hits;    ///< programs in the kernel answer these,
  std::shared_ptr<const Expression> of_events;  ///< and not these (trace_attribute()), which need not be asked then
};
[[nodiscard]] SplitCondition split_condition(const std::shared_ptr<const Expression>& where);

/// Whether a key or the value of the table, or the condition, is asked of events.
[[nodiscard]] bool asks_events(const Question& question);

}  // namespace usdt::session
