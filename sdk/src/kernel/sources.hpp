// SPDX-License-Identifier: BSD-2-Clause
// The places where the kernel tells of itself.
#pragma once

#include <string>
#include <vector>

namespace usdt::kernel {

/// The files that have the lists; tests have their own.
struct Sources {
  std::string kallsyms = "/proc/kallsyms";
  /// Directories where tracefs may be mounted, the second by way of debugfs.
  std::vector<std::string> tracefs = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
  std::string blacklist = "/sys/kernel/debug/kprobes/blacklist";
  std::string btf = "/sys/kernel/btf";

  friend bool operator==(const Sources&, const Sources&) = default;
};

}  // namespace usdt::kernel
