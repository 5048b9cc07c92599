// SPDX-License-Identifier: BSD-2-Clause
// Mounts, as the calling process sees them.
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
  std::string options;  ///< of the file system, "rw,delegate_cmds=prog_load"
};

/// Returns the mounts; none if /proc cannot be read. Reads at most the first MiB of lines.
[[nodiscard]] std::vector<Mount> mounts();

/// Returns the place where the whole tree of cgroup v2 is mounted; empty: nowhere.
[[nodiscard]] std::string cgroup_tree();

}  // namespace usdt::sys
