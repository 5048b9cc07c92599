// SPDX-License-Identifier: BSD-2-Clause
#include "usdt-trace/missed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace usdt_trace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using usdt::Backend;
using usdt::MissedHits;

TEST(Missed, hits_of_a_trampoline_are_those_of_preempted_tasks) {
  const std::vector<MissedHits> missed = {{Backend::tracing_multi, 34852, {0}}};
  EXPECT_THAT(missed_text(missed), AllOf(HasSubstr("34852 missed: a task was preempted"), Not(HasSubstr("nested"))));
  EXPECT_TRUE(any_missed(missed));
}

TEST(Missed, hits_are_summed_by_cause) {
  const std::vector<MissedHits> missed = {{Backend::tracing, 1, {0}},
                                          {Backend::tracing, 2, {1}},
                                          {Backend::kprobe_multi, 40, {2, 3}},
                                          {Backend::perf_kprobe, 4, {4}}};
  EXPECT_THAT(missed_text(missed), AllOf(HasSubstr("; 3 missed: a task"), HasSubstr("; 44 missed: the processor")));
}

TEST(Missed, hits_that_are_none_are_not_mentioned) {
  const std::vector<MissedHits> missed = {{Backend::kprobe_multi, 0, {0}}};
  EXPECT_EQ(missed_text(missed), "");
  EXPECT_FALSE(any_missed(missed));
}

TEST(Missed, hits_this_kernel_does_not_count_are_not_said_to_be_none) {
  const std::vector<MissedHits> missed = {{Backend::perf_kprobe, std::nullopt, {0}}};
  EXPECT_THAT(missed_text(missed), AllOf(HasSubstr("this kernel does not say"), HasSubstr("Linux 6.10")));
  EXPECT_FALSE(any_missed(missed)) << "nothing is known to be lost";
}

TEST(Missed, hits_of_processes_are_nobodys_concern) {
  const std::vector<MissedHits> missed = {{Backend::perf_uprobe, std::nullopt, {}}};
  EXPECT_EQ(missed_text(missed), "");
}

}  // namespace
}  // namespace usdt_trace
