// SPDX-License-Identifier: BSD-2-Clause
// The running kernel's own lists, against another way to count them.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/utsname.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include "fixture.hpp"
#include "kernel/ask_lists.hpp"
#include "usdt/pattern.hpp"

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

/// What is known of a function, in words. Before 6.5 lists do not say which functions of one name are traceable.
std::string known(const KernelFunction& function) {
  static const bool tells = readable("/sys/kernel/tracing/available_filter_functions_addrs");
  return fmt::format("{}:{} at {:#x}{}{}{}{} type {}", function.module, function.name, function.address,
                     function.ftrace && (tells || !function.duplicate) ? " traceable" : "",
                     function.alias ? " alias" : "", function.denied ? " denied" : "",
                     function.duplicate ? " duplicate" : "", function.btf_id);
}

/// Of all functions that `pattern` means, traceable or not.
std::vector<std::string> known_of(const Catalogue& catalogue, const KernelPattern& pattern) {
  std::vector<std::string> out;
  for (const KernelFunction& function : catalogue.functions()) {
    if (glob_match(pattern.name, function.name)) out.push_back(known(function));
  }
  std::ranges::sort(out);
  return out;
}

/// Why this kernel cannot be asked for what globs mean (6.0, with types, ftrace and a readable blacklist).
std::string why_not_asked() {
  if (!readable("/sys/kernel/debug/kprobes/blacklist")) return "no list of what kprobes may not be put into";
  if (!readable("/sys/kernel/tracing/available_filter_functions")) return "no list of what ftrace can trace";
  const auto types = btf::Types::load();
  if (!types) return types.error().message;
#ifdef __aarch64__
  // The programs that read lists are of the kind that trampolines run, which came with 6.4.
  utsname system{};
  int major = 0;
  int minor = 0;
  if (::uname(&system) == 0 && std::sscanf(system.release, "%d.%d", &major, &minor) == 2 &&
      std::pair(major, minor) < std::pair(6, 4))
    return "arm64 has no tracing programs before 6.4: lists are read";
#endif
  return (*types)->function_id("bpf_iter_ksym") == 0 ? "this kernel has no iterators over symbols" : "";
}

/// Other sources than the default ones are read, if they are the same.
Sources lists() {
  Sources sources;
  sources.tracefs.pop_back();
  return sources;
}

TEST(RunningKernel, asked_for_what_globs_mean_tells_the_same_as_its_lists) {
  if (const std::string why = why_not_asked(); !why.empty()) GTEST_SKIP() << why;
  const auto types = btf::Types::load();
  ASSERT_TRUE(types && ask_symbols(**types, std::array{std::string_view("vfs_")}) && ask_ftrace_places(**types));
  std::vector<KernelPattern> patterns;
  for (char letter = 'A'; letter <= 'z'; ++letter) {
    if (std::isalpha(letter) || letter == '_') patterns.push_back(test::pattern(fmt::format("kprobe:{}*", letter)));
  }
  const auto listed = Catalogue::load(lists(), patterns);
  const auto asked = Catalogue::load({}, patterns);
  ASSERT_TRUE(listed && asked);
  EXPECT_GT((*listed)->functions().size(), 10000U);
  for (const KernelPattern& pattern : patterns) {
    const std::vector<std::string> expected = known_of(**listed, pattern);
    const std::vector<std::string> found = known_of(**asked, pattern);
    std::vector<std::string> differ;
    std::ranges::set_symmetric_difference(expected, found, std::back_inserter(differ));
    EXPECT_THAT(differ, ::testing::IsEmpty()) << pattern.str();
  }
}

/// Of this process and what the kernel does for it.
double processor_ms() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

TEST(RunningKernel, tells_what_a_glob_means_in_half_the_time_that_its_lists_take) {
  if (const std::string why = why_not_asked(); !why.empty()) GTEST_SKIP() << why;
  const std::vector patterns = {test::pattern("kprobe:pc*")};
  double asked = INFINITY, listed = INFINITY;  // of three rounds the shortest, which nobody else disturbed
  for (int round = 0; round < 3; ++round) {
    const double start = processor_ms();
    ASSERT_TRUE(Catalogue::load({}, patterns));
    const double between = processor_ms();
    ASSERT_TRUE(Catalogue::load(lists(), patterns));
    asked = std::min(asked, between - start);
    listed = std::min(listed, processor_ms() - between);
  }
  fmt::print("  asked {:.0f} ms, lists {:.0f} ms\n", asked, listed);
  EXPECT_LT(asked * 2, listed);
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
