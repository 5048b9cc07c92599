// SPDX-License-Identifier: BSD-2-Clause
// What is mounted where, as the calling process sees it.
#pragma once

#include <string>
#include <vector>

namespace usdt::sys {

/// A line of /proc/self/mountinfo (proc_pid_mountinfo(5)).
struct Mount {
  std::string device;  ///< "8:1": of the file system
  std::string root;    ///< the directory of it that is mounted
  std::string place;   ///< where
  std::string type;
};

/// Empty where /proc cannot be read. At most the first MiB of lines.
[[nodiscard]] std::vector<Mount> mounts();

/// Where the tree of cgroup v2 is mounted, from its root on; empty: nowhere.
[[nodiscard]] std::string cgroup_tree();

}  // namespace usdt::sys
