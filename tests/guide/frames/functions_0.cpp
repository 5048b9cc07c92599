// SPDX-License-Identifier: BSD-2-Clause
#include <usdt/usdt.hpp>
#include <utility>

void trace_function(const usdt::StopToken& stop) {
  // BLOCK
}
