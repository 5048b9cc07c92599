// SPDX-License-Identifier: BSD-2-Clause
// Each case runs in a process of its own (CTest), because certain answers are kept for the process.
#include "usdt/features.hpp"

#include <gtest/gtest.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <thread>

#include "fake_syscalls.hpp"

namespace usdt {
namespace {

using test::FakeKernel;

TEST(Features, a_kernel_without_uprobe_multi_answers_einval_for_a_directory) {
  FakeKernel kernel;
  kernel.link_multi = [](const auto&) { return -EINVAL; };
  const sys::ScopedSyscalls scoped(kernel);
  EXPECT_EQ(probe_feature(Feature::uprobe_multi).answer, Answer::no);
  EXPECT_NE(probe_feature(Feature::uprobe_multi_pid).answer, Answer::yes);
}

TEST(Features, a_kernel_with_uprobe_multi_answers_ebadf_for_a_directory_and_einval_for_pid_minus_one) {
  FakeKernel kernel;
  kernel.link_multi = [](const sys::LinkCreateUprobeMulti& attr) {
    return static_cast<std::int32_t>(attr.pid) < 0 ? -EINVAL : -EBADF;
  };
  const sys::ScopedSyscalls scoped(kernel);
  EXPECT_EQ(probe_feature(Feature::uprobe_multi).answer, Answer::yes);
  EXPECT_EQ(probe_feature(Feature::uprobe_multi_pid).answer, Answer::yes);
}

TEST(Features, a_thread_filtering_kernel_looks_pid_minus_one_up) {
  FakeKernel kernel;
  kernel.link_multi = [](const auto&) { return -EBADF; };
  const sys::ScopedSyscalls scoped(kernel);
  EXPECT_EQ(probe_feature(Feature::uprobe_multi_pid).answer, Answer::no);
}

TEST(Features, lack_of_privilege_is_no_answer_and_is_asked_again) {
  FakeKernel kernel;
  kernel.prog_load = [](const auto&) { return -EPERM; };
  const sys::ScopedSyscalls scoped(kernel);
  EXPECT_EQ(probe_feature(Feature::uprobe_multi).answer, Answer::unknown);
  EXPECT_EQ(probe_feature(Feature::attach_cookie).answer, Answer::unknown);
  kernel.prog_load = [](const auto&) { return FakeKernel::descriptor(); };
  EXPECT_EQ(probe_feature(Feature::attach_cookie).answer, Answer::yes);
}

TEST(Features, a_kernel_that_loads_programs_but_not_this_helper_has_no_cookies) {
  FakeKernel kernel;
  kernel.prog_load = [](const sys::ProgLoad& attr) {
    const bool calls = *reinterpret_cast<const std::uint64_t*>(attr.insns) == 0x000000ae00000085;
    return calls ? -EINVAL : FakeKernel::descriptor();
  };
  const sys::ScopedSyscalls scoped(kernel);
  EXPECT_EQ(probe_feature(Feature::attach_cookie).answer, Answer::no);
}

TEST(Features, the_errno_of_the_uprobe_call_tells_which_nops_are_optimised) {
  FakeKernel kernel;
  kernel.uprobe_result = -EPROTO;
  const sys::ScopedSyscalls scoped(kernel);
  EXPECT_EQ(nop_optimisation(), NopOptimisation::nop10);
}

TEST(Features, a_nop5_kernel_is_known_by_enxio) {
  FakeKernel kernel;
  kernel.uprobe_result = -ENXIO;
  const sys::ScopedSyscalls scoped(kernel);
  EXPECT_EQ(nop_optimisation(), NopOptimisation::nop5);
}

TEST(Features, not_knowing_counts_as_the_dangerous_kind) {
  FakeKernel kernel;
  kernel.uprobe_result = -EPERM;
  const sys::ScopedSyscalls scoped(kernel);
  EXPECT_EQ(nop_optimisation(), NopOptimisation::nop5);
}

TEST(KernelAbilities, are_asked_no_further_than_the_kinds_depend_on_them) {
  KernelAbilities nothing;
  nothing.machine = kernel_machine();
  nothing.kernel_btf = probe_feature(Feature::kernel_btf).answer == Answer::yes;
  EXPECT_EQ(kernel_abilities({}), nothing);
  const KernelAbilities all = kernel_abilities();
  constexpr KernelKind raw{KernelFamily::raw_tp, Moment::entry};
  KernelAbilities expected = nothing;
  expected.raw_tp_cookies = all.raw_tp_cookies;
  EXPECT_EQ(kernel_abilities({{raw}}), expected);
  constexpr KernelKind entry{KernelFamily::kprobe, Moment::entry};
  expected = nothing;
  expected.kprobe_multi = all.kprobe_multi;
  expected.perf_kprobe = all.perf_kprobe;
  expected.perf_cookies = all.perf_cookies;
  EXPECT_EQ(kernel_abilities({{entry}}), expected);
}

TEST(Features, a_disabled_feature_is_answered_no) {
  FakeKernel kernel;
  kernel.link_multi = [](const auto&) { return -EBADF; };
  const sys::ScopedSyscalls scoped(kernel);
  ASSERT_EQ(probe_feature(Feature::uprobe_multi).answer, Answer::yes);
  const FeatureChoice without{.disabled = {Feature::uprobe_multi}};
  {
    const FeatureScope scope(without);
    EXPECT_EQ(probe_feature(Feature::uprobe_multi).answer, Answer::no);
    std::thread([] { EXPECT_EQ(probe_feature(Feature::uprobe_multi).answer, Answer::yes) << "of one thread"; }).join();
    const FeatureChoice all;
    const FeatureScope inner(all);
    EXPECT_EQ(probe_feature(Feature::uprobe_multi).answer, Answer::yes) << "the latest one";
  }
  EXPECT_EQ(probe_feature(Feature::uprobe_multi).answer, Answer::yes);
  EXPECT_EQ(feature_by_name("uprobe_multi").value(), Feature::uprobe_multi);
  EXPECT_NE(feature_by_name("warp").error().message.find("uprobe_multi_pid"), std::string::npos);
}

TEST(Features, a_release_has_what_came_with_it_or_before) {
  const auto has = [](Feature feature, const char* release, Machine machine = Machine::x86_64) {
    return feature_of_release(feature, release, machine);
  };
  EXPECT_EQ(has(Feature::uprobe_multi, "6.5.13"), Answer::no);
  EXPECT_EQ(has(Feature::uprobe_multi, "6.6.0-rc1+"), Answer::yes);
  EXPECT_EQ(has(Feature::uprobe_multi, "10.0"), Answer::yes) << "numbers, not texts";
  EXPECT_EQ(has(Feature::kprobe_multi, "5.18.1"), Answer::yes) << "whatever else it needs";
  EXPECT_EQ(has(Feature::tracing, "5.10.0-30-arm64", Machine::aarch64), Answer::no);
  EXPECT_EQ(has(Feature::tracing, "6.4.1", Machine::aarch64), Answer::yes);
  EXPECT_EQ(has(Feature::tracing, "5.10.0-30-amd64"), Answer::yes);
  EXPECT_EQ(has(Feature::tracing, "6.12.9", Machine::i386), Answer::no);
  EXPECT_EQ(has(Feature::tracing_multi, "7.2.1", Machine::aarch64), Answer::no);
  for (const char* none : {"", "six", "6", "6.", ".6", "-6.1", "99999999999999.1"})
    EXPECT_EQ(has(Feature::uprobe_multi, none), Answer::unknown) << none;
}

TEST(Features, what_the_kernel_does_not_tell_can_be_assumed_of_its_release) {
  FakeKernel kernel;
  kernel.link_multi = [](const auto&) { return -EPERM; };
  const sys::ScopedSyscalls scoped(kernel);
  ASSERT_EQ(probe_feature(Feature::uprobe_session).answer, Answer::unknown);
  const FeatureChoice choice{.assumes_release = true};
  const FeatureScope scope(choice);
  const FeatureState assumed = probe_feature(Feature::uprobe_session);
  utsname name{};
  ASSERT_EQ(::uname(&name), 0);
  EXPECT_EQ(assumed.answer, feature_of_release(Feature::uprobe_session, name.release, kernel_machine()));
  EXPECT_TRUE(assumed.detail.starts_with(std::string("assumed of Linux ") + name.release)) << assumed.detail;
}

TEST(Features, kernel_btf_is_there_exactly_where_its_file_is_and_can_be_switched_off) {
  const bool there = ::access("/sys/kernel/btf/vmlinux", F_OK) == 0;
  EXPECT_EQ(probe_feature(Feature::kernel_btf).answer == Answer::yes, there);
  const FeatureChoice without{.disabled = {Feature::kernel_btf}};
  const FeatureScope scope(without);
  EXPECT_EQ(probe_feature(Feature::kernel_btf).answer, Answer::no);
}

TEST(Features, the_running_kernel_is_never_wrongly_denied_a_feature_it_shows) {
  for (const FeatureState& state : probe_features()) {
    EXPECT_FALSE(state.detail.empty()) << to_string(state.feature);
  }
  // Whoever has uprobe_multi (6.6) has cookies (5.15) and semaphores (4.20).
  if (probe_feature(Feature::uprobe_multi).answer == Answer::yes) {
    EXPECT_NE(probe_feature(Feature::attach_cookie).answer, Answer::no);
    EXPECT_NE(probe_feature(Feature::ref_ctr).answer, Answer::no);
  }
}

}  // namespace
}  // namespace usdt
