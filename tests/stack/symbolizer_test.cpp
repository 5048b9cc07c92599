// SPDX-License-Identifier: BSD-2-Clause
// Names of our own addresses: what the compiler and the linker say of them is known here.
#include "usdt/symbolizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace named {

constexpr unsigned line = __LINE__ + 1;
__attribute__((noinline)) int in_a_namespace(int n, const char*) { return n + 1; }

}  // namespace named

namespace usdt {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

ProcessAddr address_of(auto* function) { return ProcessAddr(reinterpret_cast<std::uint64_t>(function)); }

TEST(Symbolizer, names_a_function_of_a_running_process_with_its_line_and_file) {
  Symbolizer symbolizer;
  const auto frames = symbolizer.frames_at(::getpid(), address_of(&named::in_a_namespace) + 2);
  ASSERT_EQ(frames.size(), 1U);
  const Frame& frame = frames.front();
  EXPECT_EQ(frame.function, "named::in_a_namespace(int, char const*)");
  EXPECT_EQ(frame.distance, 2U);
  EXPECT_THAT(frame.module, EndsWith("stack_test"));
  EXPECT_THAT(frame.source, EndsWith("symbolizer_test.cpp"));
  EXPECT_EQ(frame.line, named::line);
  EXPECT_EQ(frame.issue, FrameIssue::none);
  EXPECT_FALSE(frame.inlined);
}

TEST(Symbolizer, looks_return_addresses_up_at_the_call_before) {
  Symbolizer symbolizer;
  const auto at = address_of(&named::in_a_namespace);
  const auto before = symbolizer.frames_at(::getpid(), at, true);
  EXPECT_NE(before.front().function, "named::in_a_namespace(int, char const*)");
  EXPECT_EQ(before.front().address, at);
  EXPECT_EQ(symbolizer.frames_at(::getpid(), at + 1, true).front().function, "named::in_a_namespace(int, char const*)");
  EXPECT_EQ(symbolizer.frames_at(::getpid(), at + 1, true).front().distance, 1U);
}

TEST(Symbolizer, names_functions_of_libraries_and_of_the_vdso) {
  Symbolizer symbolizer;
  const auto libc = symbolizer.frames_at(::getpid(), address_of(&::getppid));
  EXPECT_THAT(libc.front().module, HasSubstr("libc"));
  EXPECT_THAT(libc.back().function, HasSubstr("getppid"));
  EXPECT_FALSE(libc.front().build_id.empty());
  EXPECT_TRUE(libc.front().offset.has_value());
}

TEST(Symbolizer, says_why_there_is_no_name) {
  Symbolizer symbolizer;
  EXPECT_EQ(symbolizer.frames_at(::getpid(), ProcessAddr(16)).front().issue, FrameIssue::not_mapped);
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ::usleep(20'000);  // the mappings were just read
  const auto made = symbolizer.frames_at(::getpid(), ProcessAddr(reinterpret_cast<std::uint64_t>(page) + 8));
  ::munmap(page, 4096);
  EXPECT_EQ(made.front().issue, FrameIssue::no_file);
  EXPECT_EQ(symbolizer.frames_at(0, ProcessAddr(0x401000)).front().issue, FrameIssue::process_gone);
  for (int issue = 1; issue <= static_cast<int>(FrameIssue::code_replaced); ++issue)
    EXPECT_FALSE(to_string(static_cast<FrameIssue>(issue)).empty()) << issue;
}

TEST(Symbolizer, remembers_a_process_that_has_ended) {
  Symbolizer symbolizer;
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  symbolizer.see(child);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(symbolizer.frames_at(child, address_of(&named::in_a_namespace)).front().function,
            "named::in_a_namespace(int, char const*)");
}

}  // namespace
}  // namespace usdt
