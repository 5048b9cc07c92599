// SPDX-License-Identifier: BSD-2-Clause
// The running kernel's own lists, against another way to count them.
#include <fcntl.h>
#include <gmock/gmock.h>

#include <array>
#include <fstream>
#include <set>

#include "fixture.hpp"

namespace usdt::kernel {
namespace {

/// What a shell pipeline says: a number.
long count_of(const char* command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command, "r"), ::pclose);
  long count = -1;
  return pipe && std::fscanf(pipe.get(), "%ld", &count) == 1 ? count : -1;
}

bool readable(const char* path) {
  std::ifstream in(path);
  return in.peek() != std::ifstream::traits_type::eof();
}

TEST(RunningKernel, kallsyms_has_as_many_functions_as_grep_counts) {
  if (!readable("/proc/kallsyms")) GTEST_SKIP() << "/proc/kallsyms cannot be read";
  const long expected = count_of(
      "grep -E '^[0-9a-f]+ [tTwW] ' /proc/kallsyms | grep -vE ' (__pfx_|__cfi_|[$])' | grep -vE "
      "'[.]cold([.[:space:]]|$)'"
      " | grep -vE '(_text_start|_text_end| _text| _stext| _etext)([[:space:]]|$)' | grep -vcE "
      "'\\[(bpf|__builtin__.*)\\]'");
  const auto text = Text::read("/proc/kallsyms");
  ASSERT_TRUE(text) << text.error().message;
  ModuleNames modules;
  EXPECT_EQ(static_cast<long>(parse_kallsyms(text->view(), modules).functions.size()), expected);
}

TEST(RunningKernel, ftrace_lists_as_many_functions_as_it_has_lines) {
  constexpr const char* path = "/sys/kernel/tracing/available_filter_functions";
  if (!readable(path)) GTEST_SKIP() << path << " cannot be read";
  const long expected = count_of(
      "grep -vc '__ftrace_invalid_address__\\|\\[bpf\\]\\|__builtin__'"
      " /sys/kernel/tracing/available_filter_functions");
  const auto text = Text::read(path);
  ASSERT_TRUE(text) << text.error().message;
  ModuleNames modules;
  EXPECT_EQ(static_cast<long>(parse_filter_functions(text->view(), false, modules).size()), expected);
}

TEST(RunningKernel, a_function_every_kernel_has_is_selected) {
  if (!readable("/proc/kallsyms")) GTEST_SKIP() << "/proc/kallsyms cannot be read";
  const auto selection = select_from({}, {test::pattern("kprobe:vmlinux:vfs_read")});
  ASSERT_TRUE(selection) << selection.error().message;
  ASSERT_EQ(selection->entries.size(), 1U);
  EXPECT_EQ(selection->entries[0].function->name, "vfs_read");
  EXPECT_EQ(selection->entries[0].function->btf_id != 0, CatalogueOf::selection(*selection).btf("") != nullptr);
}

TEST(RunningKernel, the_scheduler_has_its_tracepoint) {
  if (!readable("/sys/kernel/btf/vmlinux")) GTEST_SKIP() << "the kernel has no types";
  const auto selection = select_from({}, {test::pattern("tp_btf:sched_switch")});
  ASSERT_TRUE(selection) << selection.error().message;
  EXPECT_EQ(selection->entries.size(), 1U);
}

}  // namespace
}  // namespace usdt::kernel
