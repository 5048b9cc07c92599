// SPDX-License-Identifier: BSD-2-Clause
// Which files a client may have breakpoints in, as far as that can be told without another user.
#include "serve/allowed_files.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace usdt::serve {
namespace {

using ::testing::HasSubstr;

BrokerClient self() { return {::getpid(), ::getuid(), ::getgid()}; }

/// A file of the test's, in memory.
sys::UniqueFd a_file(mode_t mode) {
  sys::UniqueFd fd(::memfd_create("own", MFD_CLOEXEC));
  EXPECT_EQ(0, ::fchmod(fd.get(), mode));
  return fd;
}

sys::UniqueFd open_file(const char* path, int flags) { return sys::UniqueFd(::open(path, flags | O_CLOEXEC)); }

void expect_refused(sys::UniqueFd fd, const char* why, const BrokerClient& client = self()) {
  ASSERT_TRUE(fd);
  const auto file = check_file(std::move(fd), client);
  ASSERT_FALSE(file);
  EXPECT_EQ(ErrorKind::no_permission, file.error().kind);
  EXPECT_THAT(file.error().message, HasSubstr(why));
}

TEST(AllowedFiles, AnOwnFileIsTheUsers) {
  const auto file = check_file(a_file(0755), self());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(file->own);
}

TEST(AllowedFiles, SetuidAndSetgidProgramsAreNobodys) {
  expect_refused(a_file(04755), "setuid");
  expect_refused(a_file(02755), "setuid or setgid");
}

TEST(AllowedFiles, FilesOfOtherUsersAreTheirs) {
  BrokerClient other = self();
  other.uid += 12345;
  if (::getuid() == 0)
    expect_refused(a_file(0777), "others may write to it", other);
  else
    expect_refused(a_file(0755), "neither yours nor root's", other);
}

TEST(AllowedFiles, RootsProgramsAreReadByTheBrokerItself) {
  BrokerClient other = self();
  if (other.uid == 0) other.uid = 12345;
  const auto file = check_file(open_file("/bin/sh", O_RDONLY), other);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_FALSE(file->own);
  EXPECT_THAT(file->path, HasSubstr("/"));
}

TEST(AllowedFiles, WhatIsNoFileIsRefused) {
  expect_refused(open_file("/", O_RDONLY), "no regular file");
  expect_refused(open_file("/dev/null", O_RDONLY), "no regular file");
  expect_refused(open_file("/proc/self/maps", O_RDONLY), "file system");
}

TEST(AllowedFiles, WhoMayNotReadAFileMayNotProbeIt) { expect_refused(open_file("/bin/sh", O_PATH), "for reading"); }

}  // namespace
}  // namespace usdt::serve
