// SPDX-License-Identifier: BSD-2-Clause
#include "proc/process_image.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support.hpp"

namespace usdt::test {
namespace {

TEST(ProcessImage, of_a_fork_is_that_of_its_parent_until_it_executes_a_program) {
  const auto own = proc::image_of(::getpid());
  ASSERT_TRUE(own) << own.error().message;
  const Child forked([] {
    static_cast<void>(::write(STDOUT_FILENO, "x", 1));
    ::pause();
  });
  ASSERT_GT(forked.pid, 0);
  EXPECT_EQ(proc::image_of(forked.pid)->words, own->words);
  const Child first = Child::running(PROC_SLEEPER), second = Child::running(PROC_SLEEPER);
  const auto one = proc::image_of(first.pid), other = proc::image_of(second.pid);
  ASSERT_TRUE(one && other);
  EXPECT_NE(one->words, own->words);
  EXPECT_NE(one->words, other->words) << "of one program, at other addresses";
}

TEST(ProcessImage, tells_that_code_was_mapped) {
  const auto before = proc::image_of(::getpid());
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const code = ::mmap(nullptr, 3 * page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(code, MAP_FAILED);
  const auto after = proc::image_of(::getpid());
  ::munmap(code, 3 * page);
  ASSERT_TRUE(before && after);
  EXPECT_EQ(after->words, before->words);
  EXPECT_EQ(after->code_pages, before->code_pages + 3);
}

TEST(ProcessImage, is_that_of_no_thread_of_the_kernel_and_of_nobody) {
  EXPECT_FALSE(proc::image_of(2));
  EXPECT_EQ(proc::image_of(1 << 30).error().kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace usdt::test
