// SPDX-License-Identifier: BSD-2-Clause
// The self-test on kernels of our own: what a kernel would write into the child at a hit, the test writes when the link
// is made. Each case runs in a process of its own (CTest), because certain answers are kept for the process.
#include "usdt/red_zone.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "fake_syscalls.hpp"
#include "features/measured_code.hpp"
#include "sys/unique_fd.hpp"

namespace usdt {
namespace {

using test::FakeKernel;
using ::testing::HasSubstr;

#if defined(__x86_64__)
// What the trampolines of 6.18 and 7.2 come down to: the second returns to the stack pointer before `lea
// -128(%rsp),%rsp`.
__asm__(".pushsection .text\ntest_trampoline: ret\ntest_trampoline_below: ret $128\n.popsection\n");
extern "C" const unsigned char test_trampoline[];
extern "C" const unsigned char test_trampoline_below[];
#else
constexpr unsigned char test_trampoline[1] = {};
constexpr unsigned char test_trampoline_below[1] = {};
#endif

class RedZone : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!features::has_red_zone_code()) GTEST_SKIP() << "x86-64 machine code";
    kernel.link_multi = [this](const sys::LinkCreateUprobeMulti& attr) {
      if (attr.offsets == 0 || std::strcmp(reinterpret_cast<const char*>(attr.path), "/") == 0) return -EBADF;
      return probe(attr);
    };
  }

  /// The nop's address in the child, where it is as in its parent.
  static const unsigned char* address_of(const sys::LinkCreateUprobeMulti& attr) {
    for (const NopForm form : {NopForm::nop, NopForm::nop5, NopForm::nop10}) {
      const unsigned char* nop = features::red_zone_code(form).nop;
      if (features::file_place(nop)->offset == *reinterpret_cast<const std::uint64_t*>(attr.offsets)) return nop;
    }
    return nullptr;
  }

  static bool poke(std::uint32_t pid, const unsigned char* at, std::initializer_list<unsigned char> bytes) {
    const sys::UniqueFd memory(::open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDWR | O_CLOEXEC));
    return ::pwrite(memory.get(), bytes.begin(), bytes.size(), reinterpret_cast<off_t>(at)) ==
           static_cast<ssize_t>(bytes.size());
  }

  /// `call target` of 5 bytes, to stand at `at`, behind `before`.
  static bool poke_call(std::uint32_t pid, const unsigned char* at, std::initializer_list<unsigned char> before,
                        const unsigned char* target) {
    const auto distance = static_cast<std::uint32_t>(target - (at + before.size() + 5));
    std::array<unsigned char, 4> d{};
    std::memcpy(d.data(), &distance, sizeof(distance));
    return poke(pid, at, before) && poke(pid, at + before.size(), {0xe8, d[0], d[1], d[2], d[3]});
  }

  static RedZoneTest result(NopForm form) { return test_red_zone(100).at(static_cast<std::size_t>(form)); }

  FakeKernel kernel;
  std::function<int(const sys::LinkCreateUprobeMulti&)> probe = [](const auto&) { return FakeKernel::descriptor(); };
};

TEST_F(RedZone, is_overwritten_by_a_kernel_that_writes_a_call_over_the_nop5) {
  kernel.uprobe_result = -ENXIO;
  probe = [](const sys::LinkCreateUprobeMulti& attr) {
    EXPECT_TRUE(address_of(attr) == nullptr || features::red_zone_code(NopForm::nop5).nop != address_of(attr) ||
                poke_call(attr.pid, address_of(attr), {}, test_trampoline));
    return FakeKernel::descriptor();
  };
  const sys::ScopedSyscalls scoped(kernel);
  const RedZoneTest test = result(NopForm::nop5);
  EXPECT_EQ(test.intact, Answer::no) << test.detail;
  EXPECT_EQ(test.cost, CostClass::optimised);
  EXPECT_EQ(test.calls, 100U);
  EXPECT_EQ(test.overwritten, 100U);
}

TEST_F(RedZone, is_intact_on_a_kernel_that_moves_the_stack_pointer_before_it_calls) {
  kernel.uprobe_result = -EPROTO;
  probe = [](const sys::LinkCreateUprobeMulti& attr) {
    EXPECT_TRUE(features::red_zone_code(NopForm::nop10).nop != address_of(attr) ||
                poke_call(attr.pid, address_of(attr), {0x48, 0x8d, 0x64, 0x24, 0x80}, test_trampoline_below));
    return FakeKernel::descriptor();
  };
  const sys::ScopedSyscalls scoped(kernel);
  const RedZoneTest test = result(NopForm::nop10);
  EXPECT_EQ(test.intact, Answer::yes) << test.detail;
  EXPECT_EQ(test.cost, CostClass::optimised);
  EXPECT_EQ(test.overwritten, 0U);
  EXPECT_THAT(test.detail, HasSubstr("48 8d 64 24 80 e8"));
}

TEST_F(RedZone, is_not_called_intact_where_no_breakpoint_appeared) {
  const sys::ScopedSyscalls scoped(kernel);
  for (const RedZoneTest& test : test_red_zone(10)) {
    EXPECT_EQ(test.intact, Answer::unknown) << to_string(test.form);
    EXPECT_FALSE(test.cost);
    EXPECT_THAT(test.detail, HasSubstr("no breakpoint"));
  }
}

TEST_F(RedZone, is_not_called_intact_where_the_child_died) {
  probe = [](const sys::LinkCreateUprobeMulti& attr) {
    EXPECT_TRUE(poke(attr.pid, address_of(attr), {0xcc}));  // nobody handles it
    return FakeKernel::descriptor();
  };
  const sys::ScopedSyscalls scoped(kernel);
  EXPECT_EQ(result(NopForm::nop).intact, Answer::unknown);
  EXPECT_THAT(result(NopForm::nop).detail, HasSubstr("died"));
}

TEST_F(RedZone, is_unknown_without_privilege_and_the_reason_names_the_call) {
  kernel.prog_load = [](const auto&) { return -EPERM; };
  kernel.open_event = [](const perf_event_attr&, pid_t) { return -EACCES; };
  const sys::ScopedSyscalls scoped(kernel);
  for (const RedZoneTest& test : test_red_zone(10)) {
    EXPECT_EQ(test.intact, Answer::unknown);
    EXPECT_EQ(test.calls, 0U);
    EXPECT_THAT(test.detail, HasSubstr("from "));
  }
}

TEST_F(RedZone, is_unknown_and_the_nop_refused_where_the_kernel_takes_no_probe_on_it) {
  probe = [](const auto&) { return -sys::kEnotsupp; };
  const sys::ScopedSyscalls scoped(kernel);
  const RedZoneTest test = result(NopForm::nop10);
  EXPECT_EQ(test.intact, Answer::unknown);
  EXPECT_EQ(test.cost, CostClass::refused);
  EXPECT_EQ(test.detail, "ENOTSUPP from BPF_LINK_CREATE");
}

TEST_F(RedZone, is_tried_by_a_perf_event_where_there_are_no_links) {
  const FeatureChoice without{.disabled = {Feature::uprobe_multi}};
  const FeatureScope scope(without);
  pid_t probed = 0;
  kernel.open_event = [&](const perf_event_attr& attr, pid_t pid) {
    probed = pid;
    EXPECT_STREQ(reinterpret_cast<const char*>(attr.config1), "/proc/self/exe");
    return FakeKernel::descriptor();
  };
  const sys::ScopedSyscalls scoped(kernel);
  const RedZoneTest test = result(NopForm::nop);
  if (test.detail.find("event source") != std::string::npos) GTEST_SKIP() << test.detail;
  EXPECT_GT(probed, 0) << "the child alone is probed";
  EXPECT_THAT(test.detail, HasSubstr("no breakpoint"));
}

TEST_F(RedZone, locals_are_intact_and_each_nop_as_it_should_be_when_nothing_is_attached) {
  for (const NopForm form : {NopForm::nop, NopForm::nop5, NopForm::nop10}) {
    const features::RedZoneCode code = features::red_zone_code(form);
    EXPECT_EQ(code.function(0x1234), 0U);
    EXPECT_LE(reinterpret_cast<std::uintptr_t>(code.nop) % 4096 + code.size, 4096U);
  }
  EXPECT_EQ(features::red_zone_code(NopForm::nop5).nop[0], 0x0f);
  EXPECT_EQ(features::red_zone_code(NopForm::nop10).nop[1], 0x2e);
}

TEST(RedZoneMachines, without_a_red_zone_have_no_test) {
  if (features::has_red_zone_code()) GTEST_SKIP() << "this machine has one";
  EXPECT_TRUE(test_red_zone(1).empty());
}

}  // namespace
}  // namespace usdt
