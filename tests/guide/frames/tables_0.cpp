// SPDX-License-Identifier: BSD-2-Clause
#include <memory>
#include <usdt/usdt.hpp>

void ask_for_table(usdt::PlanOptions& options) {
  // BLOCK
}
