// SPDX-License-Identifier: BSD-2-Clause
#include <usdt/usdt.hpp>
#include <utility>

void attach_object(const usdt::Result<usdt::Selection>& selection) {
  // BLOCK
}
