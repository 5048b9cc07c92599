// SPDX-License-Identifier: BSD-2-Clause
// Links on the running kernel, by raw tracepoints, which need neither kprobes nor trampolines.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>

#include "usdt/usdt.hpp"

namespace usdt {
namespace {

using namespace std::chrono_literals;

class EachTracepoint : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "not root";
    if (!kernel_abilities().kernel_btf) GTEST_SKIP() << "the kernel has no types";
  }

  /// Of this process alone.
  static Result<AttachPlan> plan_of(const std::string& tracepoint, PlanOptions options = {}) {
    auto pattern = KernelPattern::parse(std::string(GetParam()) + ":" + tracepoint);
    if (!pattern) return fail(pattern.error());
    auto selection = select_kernel({*pattern});
    if (!selection) return fail(selection.error());
    options.scope = OneProcess{::getpid()};
    options.kernel = kernel_abilities();
    return plan_attach({}, *selection, options);
  }
};
INSTANTIATE_TEST_SUITE_P(Live, EachTracepoint, testing::Values("raw_tp", "tp_btf"));

/// Makes the kernel fault on memory nothing is behind yet, `times` times.
void fault_in_kernel(std::size_t times) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* memory = ::mmap(nullptr, times * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  for (std::size_t i = 0; i < times; ++i) {
    char byte;
    ASSERT_EQ(::write(ends[1], static_cast<char*>(memory) + i * page, 1), 1);
    ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  }
  ::close(ends[0]);
  ::close(ends[1]);
  ::munmap(memory, times * page);
}

// Each fault is a hit of page_fault_kernel, whose program reads the same memory, to no avail: a fault within the
// program, for which the kernel does not run it again.
TEST_P(EachTracepoint, counts_the_hits_its_program_was_not_run_for) {
  constexpr std::size_t faults = 100;
  PlanOptions options;
  options.string_names = {"address"};
  const auto plan = plan_of("page_fault_kernel", options);
  if (!plan) GTEST_SKIP() << plan.error().message;
  auto tracer = Tracer::start(*plan);
  ASSERT_TRUE(tracer) << tracer.error().message;
  const auto before = tracer->missed();
  if (!before) GTEST_SKIP() << "this kernel does not count them";
  fault_in_kernel(faults);
  const auto attached = tracer->missed();
  tracer->detach();
  ASSERT_TRUE(attached);
  EXPECT_GE(tracer->counts().front().hits, faults);
  EXPECT_GE(*attached - *before, faults);
  EXPECT_GE(tracer->missed(), attached) << "detached";
}

}  // namespace
}  // namespace usdt
