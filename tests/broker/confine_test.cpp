// SPDX-License-Identifier: BSD-2-Clause
// A process that is confined as those of usdt-broker are goes on with what serving takes, and dies of anything else.
#include "tools/usdt-broker/confine.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <thread>

namespace usdt_broker {
namespace {

constexpr int kConfinedNot = 99;

/// How a confined process ends that does this: its exit code, or the signal that ended it, below 0.
int end_of(const std::function<int()>& act) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    ::_exit(allow_serving_alone() ? act() : kConfinedNot);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(Confined, WhatServingTakesIsAllowed) {
  EXPECT_EQ(end_of([] {
              int pair[2] = {0, 1};  // of no socket: refused by what it is, not by the filter
              char byte = 0;
              const int file = ::open("/proc/self/status", O_RDONLY | O_CLOEXEC);
              void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              const long process = ::syscall(SYS_pidfd_open, ::getpid(), 0);
              std::thread([] {}).join();  // debug information is read by several
              const bool all = file >= 0 && ::read(file, &byte, 1) == 1 && memory != MAP_FAILED && process >= 0 &&
                               ::memfd_create("own", MFD_CLOEXEC) >= 0;
              return all && ::recv(pair[0], &byte, 1, MSG_DONTWAIT) < 0 ? 7 : 8;
            }),
            7);
}

TEST(Confined, AnythingElseKills) {
  EXPECT_EQ(end_of([] { return ::socket(AF_UNIX, SOCK_STREAM, 0); }), -SIGSYS);
  EXPECT_EQ(end_of([] { return ::fork(); }), -SIGSYS);
  EXPECT_EQ(end_of([] { return ::execl("/bin/true", "true", nullptr); }), -SIGSYS);
  EXPECT_EQ(end_of([] { return ::kill(::getppid(), 0); }), -SIGSYS);
  EXPECT_EQ(end_of([] { return static_cast<int>(::syscall(SYS_ptrace, 0, 0, 0, 0)); }), -SIGSYS);
  EXPECT_EQ(end_of([] { return static_cast<int>(::syscall(SYS_perf_event_open, nullptr, 0, -1, -1, 0)); }), -SIGSYS);
  EXPECT_EQ(end_of([] { return ::setresuid(0, 0, 0); }), -SIGSYS);
  EXPECT_EQ(end_of([] { return ::prlimit(::getppid(), RLIMIT_NOFILE, nullptr, nullptr); }), -SIGSYS);
}

TEST(Confined, FilesAreReadAloneAndMemoryIsNotExecuted) {
  EXPECT_EQ(end_of([] { return ::open("/dev/null", O_WRONLY); }), -SIGSYS);
  EXPECT_EQ(end_of([] { return ::open("/tmp/none", O_RDONLY | O_CREAT, 0600); }), -SIGSYS);
  EXPECT_EQ(end_of([] {
              return ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
            }),
            -SIGSYS);
}

}  // namespace
}  // namespace usdt_broker
