// SPDX-License-Identifier: BSD-2-Clause
#include "confine.hpp"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <array>
#include <cerrno>
#include <initializer_list>
#include <memory>

namespace usdt_broker {
namespace {

/// By their names: machines lack some of them.
constexpr std::initializer_list<const char*> kAllowed = {
    // What serving is about.
    "bpf", "pidfd_open", "recvmsg", "sendmsg", "shutdown", "recvfrom", "poll", "ppoll",
    // Files of clients, /proc and /sys, which are read alone (openat below).
    "read", "pread64", "readv", "lseek", "close", "fstat", "newfstatat", "fstatat64", "stat", "lstat", "statx",
    "fstatfs", "statfs", "readlink", "readlinkat", "access", "faccessat", "faccessat2", "getdents64", "fcntl",
    "fcntl64", "dup", "getcwd", "memfd_create",
    // The journal.
    "write", "writev",
    // Memory, time, and what the C library asks.
    "munmap", "mremap", "madvise", "brk", "futex", "nanosleep", "clock_nanosleep", "clock_gettime", "gettimeofday",
    "capget", "set_robust_list", "rseq", "getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid",
    "uname", "sysinfo", "getrlimit", "wait4", "waitid", "setsid", "close_range", "dup3", "sched_getaffinity",
    "sched_yield", "getcpu", "getrandom", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack",
    "restart_syscall", "exit", "exit_group",
    // The same on machines of 32 bits.
    "_llseek", "fstat64", "stat64", "lstat64", "statfs64", "fstatfs64", "getuid32", "geteuid32", "getgid32",
    "getegid32", "ugetrlimit", "clock_gettime64", "clock_nanosleep_time64", "futex_time64", "ppoll_time64",
    // What sanitizers find out by it, whether memory may be read.
    "pipe2"};

using Filter = std::unique_ptr<void, decltype(&::seccomp_release)>;

/// `error`: a negative errno of libseccomp.
usdt::Result<void> failed(const char* what, int error) {
  return usdt::fail(usdt::os_failure(usdt::ErrorKind::io, fmt::format("limit the system calls: {}", what), -error));
}

/// Returns 0, also of a call that this machine lacks, or a negative errno.
int add(const Filter& filter, std::uint32_t action, const char* name,
        std::initializer_list<scmp_arg_cmp> conditions = {}) {
  const int number = ::seccomp_syscall_resolve_name(name);
  if (number < 0) return 0;
  return ::seccomp_rule_add_array(filter.get(), action, number, static_cast<unsigned>(conditions.size()),
                                  conditions.begin());
}

/// An argument of which these bits are `value`.
scmp_arg_cmp has_bits(unsigned argument, std::uint64_t bits, std::uint64_t value) {
  return {.arg = argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = bits, .datum_b = value};
}

int add_rules(const Filter& filter) {
  for (const char* name : kAllowed)
    if (const int error = add(filter, SCMP_ACT_ALLOW, name)) return error;
  // Nothing is opened to be written, and no memory is made to be executed.
  constexpr std::uint64_t writes = O_ACCMODE | O_CREAT | O_TRUNC;
  if (const int error = add(filter, SCMP_ACT_ALLOW, "openat", {has_bits(2, writes, O_RDONLY)})) return error;
  for (const char* name : {"mmap", "mmap2", "mprotect"})
    if (const int error = add(filter, SCMP_ACT_ALLOW, name, {has_bits(2, PROT_EXEC, 0)})) return error;
  // Whether the journal is a terminal, and how wide.
  for (const std::uint64_t asks : {TCGETS, TIOCGWINSZ})
    if (const int error = add(filter, SCMP_ACT_ALLOW, "ioctl", {has_bits(1, UINT32_MAX, asks)})) return error;
  // Its own limits, and no other process's.
  if (const int error = add(filter, SCMP_ACT_ALLOW, "prlimit64", {has_bits(0, UINT32_MAX, 0)})) return error;
  // What capabilities there are.
  if (const int error = add(filter, SCMP_ACT_ALLOW, "prctl", {has_bits(0, UINT32_MAX, PR_CAPBSET_READ)})) return error;
  // Tasks that have its memory attach and detach for it (separate_task.hpp). What clone3(2) is asked for no filter
  // sees: callers then use clone(2).
  constexpr std::uint64_t namespaces =
      CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS;
  if (const int error = add(filter, SCMP_ACT_ALLOW, "clone", {has_bits(0, CLONE_VM | namespaces, CLONE_VM)}))
    return error;
  return add(filter, SCMP_ACT_ERRNO(ENOSYS), "clone3");
}

}  // namespace

usdt::Result<void> allow_serving_alone() {
  const Filter filter(::seccomp_init(SCMP_ACT_KILL_PROCESS), &::seccomp_release);
  if (!filter) return failed("make a filter", -ENOMEM);
  if (const int error = add_rules(filter)) return failed("add a rule", error);
  if (const int error = ::seccomp_load(filter.get())) return failed("seccomp(2)", error);
  return {};
}

}  // namespace usdt_broker
