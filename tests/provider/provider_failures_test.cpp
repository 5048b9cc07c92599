// SPDX-License-Identifier: BSD-2-Clause
// libusdt-provider where memory or a system call is refused: each one that it asks for, one after the other. The linker
// puts the functions of this file in the place of libc's (--wrap).
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/types.h>
#include <unistd.h>
#include <usdt/provider.h>

#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

namespace {

/// How many more calls are answered before one is refused; none is while this is negative.
long left = -1;

/// As a filter of system calls refuses them.
bool no_memory_files = false;

bool refused() {
  if (left < 0 || left-- != 0) return false;
  errno = ENOMEM;
  return true;
}

}  // namespace

extern "C" {
void* __real_calloc(std::size_t count, std::size_t size);
void* __wrap_calloc(std::size_t count, std::size_t size) { return refused() ? nullptr : __real_calloc(count, size); }
void* __real_realloc(void* old, std::size_t size);
void* __wrap_realloc(void* old, std::size_t size) { return refused() ? nullptr : __real_realloc(old, size); }
void* __real_tsearch(const void* key, void** root, int (*compare)(const void*, const void*));
void* __wrap_tsearch(const void* key, void** root, int (*compare)(const void*, const void*)) {
  return refused() ? nullptr : __real_tsearch(key, root, compare);
}
int __real_memfd_create(const char* name, unsigned flags);
int __wrap_memfd_create(const char* name, unsigned flags) {
  if (no_memory_files) errno = EPERM;
  return no_memory_files || refused() ? -1 : __real_memfd_create(name, flags);
}
int __real_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size) { return refused() ? -1 : __real_ftruncate(fd, size); }
ssize_t __real_pwrite(int fd, const void* from, std::size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void* from, std::size_t size, off_t offset) {
  return refused() ? -1 : __real_pwrite(fd, from, size, offset);
}
void* __real_mmap(void* at, std::size_t size, int protection, int flags, int fd, off_t offset);
void* __wrap_mmap(void* at, std::size_t size, int protection, int flags, int fd, off_t offset) {
  return refused() ? MAP_FAILED : __real_mmap(at, size, protection, flags, fd, offset);
}
void* __real_mremap(void* old, std::size_t old_size, std::size_t size, int flags, ...);
void* __wrap_mremap(void* old, std::size_t old_size, std::size_t size, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  void* at = va_arg(rest, void*);
  va_end(rest);
  return refused() ? MAP_FAILED : __real_mremap(old, old_size, size, flags, at);
}
int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...) {
  std::va_list rest;
  va_start(rest, command);
  const int argument = va_arg(rest, int);
  va_end(rest);
  return refused() ? -1 : __real_fcntl(fd, command, argument);
}
}

namespace {

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// Everything a provider lives through; what its functions return. Each probe is fired as if it were traced.
std::vector<int> live() {
  std::vector<int> status;
  usdtp_provider* provider = nullptr;
  usdtp_probe* probes[3] = {};
  const auto add = [&](int i, const char* name) {
    status.push_back(usdtp_probe_add(provider, name, "i32 number, text what", &probes[i]));
    probes[i]->semaphore = 1;
    USDT_PROBE_FIRE(probes[i], i, "text", 4U);
  };
  status.push_back(usdtp_provider_create("refused", 0, &provider));
  if (!provider) return status;
  add(0, "first");
  add(1, "second");
  status.push_back(usdtp_provider_publish(provider));
  add(2, "third");
  status.push_back(usdtp_provider_publish(provider));
  usdtp_probe_retire(probes[0]);
  usdtp_probe_retire(probes[1]);
  add(0, "first");
  status.push_back(usdtp_provider_publish(provider));
  status.push_back(usdtp_provider_publish(provider));
  usdtp_provider_retire(provider);
  for (usdtp_probe* probe : probes) USDT_PROBE_FIRE(probe, 1, "text", 4U);
  return status;
}

TEST(RefusedProvider, every_refusal_is_an_error_and_nothing_is_lost) {
  const std::size_t descriptors = open_descriptors();
  int reported = 0;
  long calls = 0;
  for (;; ++calls) {
    ASSERT_LT(calls, 1000);
    left = calls;
    const std::vector<int> status = live();
    const bool was_refused = left < 0;
    left = -1;
    bool has_error = false;
    for (const int each : status) {
      EXPECT_TRUE(each == 0 || each == -ENOMEM) << each << " where call " << calls << " was refused";
      has_error |= each != 0;
    }
    reported += has_error;
    EXPECT_EQ(open_descriptors(), descriptors) << "after call " << calls << " was refused";
    if (!was_refused) {
      EXPECT_FALSE(has_error);
      break;
    }
  }
  std::printf("of %ld calls that were refused, %d were errors; the others concern what is retired, or seals\n", calls,
              reported);
  EXPECT_GT(calls, 30);
  EXPECT_GT(reported, 20);
}

/// A file system of one page, in $TMPDIR.
class SmallFileSystem {
 public:
  SmallFileSystem() {
    EXPECT_NE(::mkdtemp(path_), nullptr);
    EXPECT_EQ(::mount("tmpfs", path_, "tmpfs", 0, "size=4096"), 0) << std::strerror(errno);
    ::setenv("TMPDIR", path_, 1);
  }
  ~SmallFileSystem() {
    ::unsetenv("TMPDIR");
    ::umount2(path_, MNT_DETACH);
    ::rmdir(path_);
  }
  SmallFileSystem(const SmallFileSystem&) = delete;
  SmallFileSystem& operator=(const SmallFileSystem&) = delete;

 private:
  char path_[32] = "/tmp/usdt-small-XXXXXX";
};

/// A page that it has no room for ends who writes to it with SIGBUS.
TEST(RefusedProvider, a_file_system_that_is_full_is_left_for_another) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root: cannot mount";
  const SmallFileSystem small;
  no_memory_files = true;
  for (const int status : live()) EXPECT_EQ(status, 0);
  no_memory_files = false;
}

}  // namespace
