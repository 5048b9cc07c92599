// SPDX-License-Identifier: BSD-2-Clause
// Descriptors are closed by tasks that exit, and also where there is no memory for such tasks.
#include "sys/separate_task.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

bool no_memory = false;

}  // namespace

// NOLINTBEGIN: the test takes the place of what allocates; inlined, g++ takes it for a mistake
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* memory = no_memory ? nullptr : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }
// NOLINTEND

namespace usdt::sys {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(CloseInExitingTasks, closes_all_with_memory_and_without) {
  for (const bool without : {false, true}) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    no_memory = without;
    close_in_exiting_tasks(ends);
    no_memory = false;
    EXPECT_FALSE(is_open(ends[0])) << without;
    EXPECT_FALSE(is_open(ends[1])) << without;
  }
}

}  // namespace
}  // namespace usdt::sys
