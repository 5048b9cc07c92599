// SPDX-License-Identifier: BSD-2-Clause
#include "sys/pid_namespace.hpp"

#include <sys/stat.h>

#include <cerrno>

namespace usdt::sys {

Result<std::optional<PidNamespace>> nested_pid_namespace() {
  // The initial namespace's inode: PROC_PID_INIT_INO, include/linux/proc_ns.h.
  constexpr ino_t initial = 0xEFFFFFFCu;
  struct stat ns {};
  if (::stat("/proc/self/ns/pid", &ns) != 0) return fail(os_failure(ErrorKind::io, "/proc/self/ns/pid", errno));
  if (ns.st_ino == initial) return std::nullopt;
  return PidNamespace{ns.st_dev, ns.st_ino};
}

}  // namespace usdt::sys
