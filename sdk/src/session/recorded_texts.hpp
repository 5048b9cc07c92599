// SPDX-License-Identifier: BSD-2-Clause
// Texts of a recording as they were read: what was read by a length is not the text up to its NUL. Private to the
// library.
#pragma once

#include "usdt/expression.hpp"
#include "usdt/print_list.hpp"
#include "usdt/result.hpp"

namespace usdt::session {

/// Checks that no text of `asked`, by AttachPlan::probes, is another one than `recorded` says it was read as. Errors:
/// invalid_argument.
[[nodiscard]] Result<void> check_recorded_texts(const Printed& recorded, const Printed& asked);
/// Checks the texts that a question is about. Errors: likewise.
[[nodiscard]] Result<void> check_recorded_texts(const Printed& recorded, const Expression& asked);

}  // namespace usdt::session
