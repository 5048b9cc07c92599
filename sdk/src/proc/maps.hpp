// SPDX-License-Identifier: BSD-2-Clause
// The text of /proc/PID/maps (proc_pid_maps(5)) -> values. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/address.hpp"

namespace usdt::proc {

/// One line: `start-end perms offset major:minor inode path`.
struct Mapping {
  ProcessAddr start;
  ProcessAddr end;
  bool executable = false;
  std::uint64_t offset = 0;  ///< of the mapping's start in the file
  std::uint32_t major = 0;   ///< of the device, as the kernel knows the inode: btrfs and overlayfs show stat(2) another
  std::uint32_t minor = 0;
  std::uint64_t inode = 0;  ///< 0: anonymous
  /// As printed, with the kernel's "\012" turned back into a newline. " (deleted)" is left on: a file may be called so.
  std::string path;

  friend bool operator==(const Mapping&, const Mapping&) = default;
};

/// Every line that has the form above; others are passed over.
[[nodiscard]] std::vector<Mapping> parse_maps(std::string_view text);

}  // namespace usdt::proc
