// SPDX-License-Identifier: BSD-2-Clause
// Links on the running kernel, by raw tracepoints, which need neither kprobes nor trampolines.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include "../live/bpf/bpf_directory.hpp"
#include "usdt/usdt.hpp"

namespace usdt {
namespace {

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
    auto selection = select({*pattern});
    if (!selection) return fail(selection.error());
    options.scope = *OneProcess::of(::getpid());
    return plan_attach(*selection, {.abilities = kernel_abilities()}, options);
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
  options.texts.names = {"address"};
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

TEST_P(EachTracepoint, stays_attached_while_it_is_pinned) {
  const test::BpfDirectory directory;
  if (!directory.mounted()) GTEST_SKIP() << "no BPF file system can be mounted here";
  const std::filesystem::path pin = directory.file("pin");
  const auto plan = plan_of("sys_*");
  ASSERT_TRUE(plan) << plan.error().message;
  auto tracer = Tracer::start(*plan, {.count_only = true});
  ASSERT_TRUE(tracer) << tracer.error().message;
  const auto hits = [&] {
    std::uint64_t sum = 0;
    for (const ProbeCounts& probe : tracer->counts()) sum += probe.hits;
    return sum;
  };
  const std::size_t sites = tracer->link().attached();
  const auto pinned = tracer->link().pin(pin);
  ASSERT_TRUE(pinned) << pinned.error().message;
  tracer->detach();
  const std::uint64_t detached = hits();
  for (int i = 0; i < 100; ++i) ::getppid();
  EXPECT_GE(hits() - detached, 200U) << "entries and returns are counted without us";
  {
    const auto again = Link::open(pin);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(to_string(again->backend()), GetParam());
    EXPECT_EQ(again->attached(), sites);
    EXPECT_EQ(again->carrier(), tracer->link().carrier());
    ASSERT_TRUE(Link::unpin(pin));
    const std::uint64_t before = hits();
    ::getppid();
    EXPECT_GE(hits() - before, 2U) << "the opened link still holds it";
  }
  const std::uint64_t released = hits();
  ::getppid();
  EXPECT_EQ(hits(), released);
  EXPECT_EQ(Link::open(pin).error().kind, ErrorKind::not_found);
  EXPECT_FALSE(std::filesystem::exists(pin));
}

}  // namespace
}  // namespace usdt
