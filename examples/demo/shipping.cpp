// SPDX-License-Identifier: BSD-2-Clause
// A probe with a semaphore: a counter the tracer raises while it listens. What is costly to make only for the probe,
// here the label, is made only then.
#define _SDT_HAS_SEMAPHORES 1  // NOLINT(bugprone-reserved-identifier): the switch of sys/sdt.h
#include "shipping.hpp"

#include <sys/sdt.h>

#include <string>

extern "C" {
// The name sys/sdt.h gives it, in the section where tools look for semaphores.
__extension__ volatile unsigned short orders_shipped_semaphore __attribute__((section(".probes")));
}

namespace demo {

void ship(std::uint64_t id, std::string_view city, std::uint32_t micros) {
  if (orders_shipped_semaphore == 0) return;
  const std::string label = std::to_string(id) + " -> " + std::string(city);
  STAP_PROBE3(orders, shipped, id, label.c_str(), micros);
}

}  // namespace demo
