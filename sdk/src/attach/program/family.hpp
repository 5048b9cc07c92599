// SPDX-License-Identifier: BSD-2-Clause
// Families of processes, to whose memory alone breakpoints are attached. Private to the kernel half.
#pragma once

#include <sys/types.h>

#include <vector>

namespace usdt::backends {

/// Processes that are traced with all that descends from them, and nobody else: LoadOptions::family.
struct Family {
  std::vector<pid_t> roots;
  bool held = false;  ///< they do nothing until they are attached
  /// This process is not among them, whoever's child it is, nor is what the library starts to help it.
  bool without_self = false;
};

}  // namespace usdt::backends
