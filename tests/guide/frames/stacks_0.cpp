// SPDX-License-Identifier: BSD-2-Clause
#include <chrono>
#include <usdt/usdt.hpp>
#include <utility>

void trace_stacks(usdt::Result<usdt::AttachPlan> plan) {
  // BLOCK
}
