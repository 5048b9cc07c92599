// SPDX-License-Identifier: BSD-2-Clause
#include "sys/syscalls.hpp"

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "sys/bpf_token.hpp"
#include "sys/direct_call.hpp"
#include "sys/separate_task.hpp"
#include "sys/uapi.hpp"

namespace usdt::sys {
namespace {

thread_local Syscalls* replaced = nullptr;

int result(long r) { return r < 0 ? -errno : static_cast<int>(r); }

/// Whether bpf(2) makes a uprobe_multi link: no other link writes to the memory of other processes.
bool puts_breakpoints(int cmd, const void* attr) {
  return cmd == kBpfLinkCreateCmd &&
         static_cast<const LinkCreateUprobeMulti*>(attr)->attach_type == kBpfAttachTraceUprobeMulti;
}

}  // namespace

int Syscalls::bpf(int cmd, void* attr, unsigned size) {
  if (puts_breakpoints(cmd, attr)) return static_cast<int>(call_in_separate_task(SYS_bpf, cmd, attr, size));
  const int done = result(::syscall(SYS_bpf, cmd, attr, size));
  return done == -EPERM ? bpf_with_token(cmd, attr, size) : done;
}

int Syscalls::perf_event_open(perf_event_attr* attr, pid_t pid, int cpu, int group_fd, unsigned long flags) {
  // Opening the event of a uprobe is what puts its breakpoint in place.
  return static_cast<int>(
      call_in_separate_task(SYS_perf_event_open, attr, pid, cpu, group_fd, flags | PERF_FLAG_FD_CLOEXEC));
}

int Syscalls::perf_event_set_bpf(int event_fd, int prog_fd) {
  return result(::ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, prog_fd));
}

int Syscalls::uprobe() { return kNrUprobe < 0 ? -ENOSYS : result(::syscall(kNrUprobe)); }

Syscalls& syscalls() noexcept {
  static Syscalls kernel;
  return replaced ? *replaced : kernel;
}

int object_info(int fd, void* info, std::uint32_t size) {
  ObjectInfo attr;
  attr.bpf_fd = static_cast<std::uint32_t>(fd);
  attr.info_len = size;
  attr.info = reinterpret_cast<std::uintptr_t>(info);
  const int error = syscalls().bpf(kBpfObjGetInfoByFdCmd, &attr, sizeof(attr));
  return error < 0 ? error : static_cast<int>(attr.info_len);
}

ScopedSyscalls::ScopedSyscalls(Syscalls& replacement) noexcept : previous_(replaced) { replaced = &replacement; }
ScopedSyscalls::~ScopedSyscalls() { replaced = previous_; }

}  // namespace usdt::sys
