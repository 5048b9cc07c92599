// SPDX-License-Identifier: BSD-2-Clause
#include <usdt/usdt.hpp>

void show(const usdt::Event& event);
void show_recording() {
  // BLOCK
}
