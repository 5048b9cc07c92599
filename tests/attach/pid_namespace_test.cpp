// SPDX-License-Identifier: BSD-2-Clause
#include "sys/pid_namespace.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

namespace usdt::sys {
namespace {

/// "pid:[4026531836]", which is the initial one's.
std::string shown() { return std::filesystem::read_symlink("/proc/self/ns/pid").string(); }

TEST(PidNamespace, is_the_one_that_proc_shows) {
  const auto nested = nested_pid_namespace();
  ASSERT_TRUE(nested) << nested.error().message;
  if (shown() == "pid:[4026531836]") {
    EXPECT_FALSE(*nested);
  } else {
    ASSERT_TRUE(*nested);
    EXPECT_EQ(shown(), "pid:[" + std::to_string((*nested)->inode) + "]");
  }
}

TEST(PidNamespace, that_is_new_is_nested) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWPID) != 0) ::_exit(77);
    const pid_t inside = ::fork();  // unshare() means the children
    if (inside == 0) {
      const auto nested = nested_pid_namespace();
      ::_exit(nested && *nested && shown() == "pid:[" + std::to_string((*nested)->inode) + "]" ? 0 : 1);
    }
    int status = 0;
    ::waitpid(inside, &status, 0);
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no permission to make a pid namespace";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace usdt::sys
