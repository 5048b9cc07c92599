// SPDX-License-Identifier: BSD-2-Clause
// The seam between this library and the kernel. Tests replace it, so that refusing kernels are ordinary input.
#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstdint>

namespace usdt::sys {

/// Each returns >= 0, or a negative errno.
class Syscalls {
 public:
  virtual ~Syscalls() = default;
  virtual int bpf(int cmd, void* attr, unsigned size);
  virtual int perf_event_open(perf_event_attr* attr, pid_t pid, int cpu, int group_fd, unsigned long flags);
  /// Runs BPF program `prog_fd` at a perf event's hits: PERF_EVENT_IOC_SET_BPF (4.1).
  virtual int perf_event_set_bpf(int event_fd, int prog_fd);
  /// uprobe(2) called from outside a trampoline: only its errno tells something.
  virtual int uprobe();
};

/// This thread's system calls: the kernel's, unless a ScopedSyscalls stands in.
[[nodiscard]] Syscalls& syscalls() noexcept;

/// BPF_OBJ_GET_INFO_BY_FD (4.13) of a program, link or BTF: how many bytes of `info` the kernel has filled in, or a
/// negative errno.
[[nodiscard]] int object_info(int fd, void* info, std::uint32_t size);
template <class Info>
[[nodiscard]] int object_info(int fd, Info& info) {
  return object_info(fd, &info, sizeof(info));
}

/// Replaces this thread's system calls for its life.
class ScopedSyscalls {
 public:
  explicit ScopedSyscalls(Syscalls& replacement) noexcept;
  ~ScopedSyscalls();
  ScopedSyscalls(const ScopedSyscalls&) = delete;
  ScopedSyscalls& operator=(const ScopedSyscalls&) = delete;

 private:
  Syscalls* previous_;
};

}  // namespace usdt::sys
