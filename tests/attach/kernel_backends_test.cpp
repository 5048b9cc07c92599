// SPDX-License-Identifier: BSD-2-Clause
// Kernel functions on a kernel made of lambdas: what is asked of it, and what becomes of its refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "fake_syscalls.hpp"
#include "link/kernel_backend.hpp"

namespace usdt::backends {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using usdt::test::FakeKernel;

FunctionArrays functions(std::size_t count) {
  FunctionArrays made;
  for (std::size_t i = 0; i < count; ++i) {
    made.names.push_back("f" + std::to_string(i));
    made.addresses.push_back(0xffffffff81000000 + 16 * i);
    made.btf_ids.push_back(static_cast<std::uint32_t>(100 + i));
    made.cookies.push_back(i);
  }
  return made;
}

const KernelProgram kKprobes{.fd = 3, .type = {2, sys::kBpfAttachTraceKprobeMulti}};
const KernelProgram kTrampolines{.fd = 3, .type = {26, sys::kBpfAttachTraceFentryMulti}};

std::vector<std::uint32_t> ids_of(const sys::LinkCreateTracingMulti& attr) {
  const auto* first = reinterpret_cast<const std::uint32_t*>(attr.ids);
  return {first, first + attr.cnt};
}

/// A kernel that refuses a link with one of `bad` in it.
void refuse(FakeKernel& kernel, std::set<std::uint32_t> bad, int error, std::size_t& attached) {
  kernel.link_trampolines = [bad = std::move(bad), error, &attached](const sys::LinkCreateTracingMulti& attr) {
    for (const std::uint32_t id : ids_of(attr))
      if (bad.contains(id)) return -error;
    attached += attr.cnt;
    return FakeKernel::descriptor();
  };
}

std::set<std::size_t> indices(const std::vector<Refusal>& refused) {
  std::set<std::size_t> all;
  for (const Refusal& refusal : refused) all.insert(refusal.index);
  return all;
}

TEST(KprobeMulti, attaches_thousands_of_functions_by_address_in_one_link) {
  FakeKernel kernel;
  int links = 0;
  kernel.link_kprobes = [&](const sys::LinkCreateKprobeMulti& attr) {
    ++links;
    EXPECT_EQ(attr.cnt, 5000U);
    EXPECT_EQ(attr.syms, 0U);
    EXPECT_EQ(reinterpret_cast<const std::uint64_t*>(attr.addrs)[4999], 0xffffffff81000000 + 16 * 4999);
    EXPECT_EQ(reinterpret_cast<const std::uint64_t*>(attr.cookies)[4999], 4999U);
    return FakeKernel::descriptor();
  };
  const sys::ScopedSyscalls scoped(kernel);
  const auto made = attach_kprobe_multi(kKprobes, functions(5000));
  ASSERT_TRUE(made);
  EXPECT_EQ(links, 1);
}

TEST(KprobeMulti, goes_by_name_where_addresses_are_hidden) {
  FakeKernel kernel;
  kernel.link_kprobes = [&](const sys::LinkCreateKprobeMulti& attr) {
    EXPECT_EQ(attr.addrs, 0U);
    EXPECT_STREQ(reinterpret_cast<const char* const*>(attr.syms)[1], "f1");
    return FakeKernel::descriptor();
  };
  FunctionArrays hidden = functions(2);
  hidden.addresses = {0, 0};
  const sys::ScopedSyscalls scoped(kernel);
  EXPECT_TRUE(attach_kprobe_multi(kKprobes, hidden));
}

TEST(TracingMulti, one_refused_function_does_not_fail_the_others) {
  FakeKernel kernel;
  std::size_t attached = 0;
  refuse(kernel, {100, 100 + 499, 100 + 999}, ENOENT, attached);
  const sys::ScopedSyscalls scoped(kernel);
  const auto links = attach_tracing_multi(kTrampolines, functions(1000));
  ASSERT_TRUE(links) << links.error().message;
  EXPECT_EQ(indices(links->refused), (std::set<std::size_t>{0, 499, 999}));
  EXPECT_EQ(attached, 997U);
  EXPECT_EQ(links->refused.front().os_error, ENOENT);
}

TEST(TracingMulti, a_trampoline_that_is_full_concerns_its_function_alone) {
  FakeKernel kernel;
  std::size_t attached = 0;
  refuse(kernel, {103}, E2BIG, attached);
  const sys::ScopedSyscalls scoped(kernel);
  const auto links = attach_tracing_multi(kTrampolines, functions(8));
  ASSERT_TRUE(links);
  EXPECT_EQ(attached, 7U);
}

TEST(TracingMulti, gives_up_where_every_function_is_refused) {
  FakeKernel kernel;
  int calls = 0;
  kernel.link_trampolines = [&](const auto&) { return ++calls, -EOPNOTSUPP; };
  const sys::ScopedSyscalls scoped(kernel);
  const auto links = attach_tracing_multi(kTrampolines, functions(40'000));
  ASSERT_TRUE(links);
  EXPECT_EQ(links->refused.size(), 40'000U);
  EXPECT_LT(calls, 200) << "40,000 functions are not tried one by one";
}

TEST(TracingMulti, does_not_search_for_a_function_where_privilege_is_missing) {
  for (const int error : {EPERM, EACCES, ENOMEM, EMFILE}) {
    FakeKernel kernel;
    int calls = 0;
    kernel.link_trampolines = [&](const auto&) { return ++calls, -error; };
    const sys::ScopedSyscalls scoped(kernel);
    const auto links = attach_tracing_multi(kTrampolines, functions(64));
    ASSERT_FALSE(links);
    EXPECT_EQ(links.error().os_error, error);
    EXPECT_EQ(calls, 1);
  }
}

TEST(Tracing, loads_a_program_for_each_function_and_links_it_with_its_cookie) {
  FakeKernel kernel;
  std::vector<std::uint64_t> cookies;
  kernel.link_tracing = [&](const sys::LinkCreateTracing& attr) {
    cookies.push_back(attr.cookie);
    return FakeKernel::descriptor();
  };
  std::vector<std::uint32_t> loaded_for;
  KernelProgram program{.fd = 3, .type = {26, sys::kBpfAttachTraceFentry}};
  program.clone = [&](std::uint32_t btf_id, std::uint64_t) {
    loaded_for.push_back(btf_id);
    return Result<sys::UniqueFd>(sys::UniqueFd(FakeKernel::descriptor()));
  };
  const sys::ScopedSyscalls scoped(kernel);
  const auto links = attach_tracing(program, functions(3));
  ASSERT_TRUE(links);
  EXPECT_THAT(loaded_for, ElementsAre(100, 101, 102));
  EXPECT_THAT(cookies, ElementsAre(0, 1, 2));
  EXPECT_EQ(links->fds.size(), 3U);
  EXPECT_EQ(links->programs.size(), 3U) << "what they missed can be asked";
}

TEST(Tracing, a_function_the_kernel_has_no_trampoline_for_is_left_out) {
  FakeKernel kernel;
  kernel.link_tracing = [&](const sys::LinkCreateTracing& attr) {
    return attr.cookie == 1 ? -EBUSY : FakeKernel::descriptor();
  };
  const sys::ScopedSyscalls scoped(kernel);
  const auto links = attach_tracing(KernelProgram{.fd = 3, .type = {26, sys::kBpfAttachTraceFexit}}, functions(3));
  ASSERT_TRUE(links);
  EXPECT_EQ(indices(links->refused), (std::set<std::size_t>{1}));
}

/// A program for each function, of which the kernel refuses those for `bad` with this errno.
KernelProgram refused_for(std::set<std::uint32_t> bad, int os_error) {
  KernelProgram program{.fd = 3, .type = {26, sys::kBpfAttachTraceFentry}};
  program.clone = [bad = std::move(bad), os_error](std::uint32_t btf_id, std::uint64_t) -> Result<sys::UniqueFd> {
    if (bad.contains(btf_id)) return fail(os_failure(ErrorKind::io, "load a program: R1 invalid", os_error));
    return sys::UniqueFd(FakeKernel::descriptor());
  };
  return program;
}

TEST(Tracing, what_the_verifier_says_reaches_the_caller) {
  FakeKernel kernel;
  const sys::ScopedSyscalls scoped(kernel);
  const auto links = attach_tracing(refused_for({101}, EACCES), functions(3));
  ASSERT_FALSE(links);
  EXPECT_THAT(links.error().message, HasSubstr("R1 invalid"));
}

TEST(Tracing, a_function_the_kernel_takes_no_program_for_is_left_out_even_if_it_is_the_first) {
  FakeKernel kernel;
  kernel.link_tracing = [](const sys::LinkCreateTracing&) { return FakeKernel::descriptor(); };
  const sys::ScopedSyscalls scoped(kernel);
  const auto links = attach_tracing(refused_for({100, 102}, EINVAL), functions(4));
  ASSERT_TRUE(links) << links.error().message;
  EXPECT_EQ(indices(links->refused), (std::set<std::size_t>{0, 2}));
  EXPECT_EQ(links->fds.size(), 2U);
  ASSERT_TRUE(links->first_refusal);
  EXPECT_THAT(links->first_refusal->message, HasSubstr("R1 invalid"));
}

TEST(Tracing, a_program_that_is_refused_for_many_functions_and_taken_for_none_is_itself_refused) {
  FakeKernel kernel;
  std::set<std::uint32_t> all;
  for (std::uint32_t id = 100; id < 300; ++id) all.insert(id);
  const sys::ScopedSyscalls scoped(kernel);
  const auto links = attach_tracing(refused_for(std::move(all), EINVAL), functions(200));
  ASSERT_FALSE(links);
  EXPECT_THAT(links.error().message, HasSubstr("R1 invalid"));
}

TEST(RawTracepoint, kernels_without_cookies_are_not_shown_any) {
  FakeKernel kernel;
  std::vector<unsigned> sizes;
  kernel.open_tracepoint = [&](const sys::RawTracepointOpen& open, unsigned size) {
    sizes.push_back(size);
    EXPECT_EQ(open.cookie, 0U);
    return FakeKernel::descriptor();
  };
  const KernelProgram program{.fd = 3, .type = {17, 0}, .has_cookies = false};
  const sys::ScopedSyscalls scoped(kernel);
  EXPECT_TRUE(attach_raw_tp(program, functions(2)));
  EXPECT_THAT(sizes, ElementsAre(16, 16));
}

TEST(RawTracepoint, one_that_does_not_exist_is_left_out) {
  FakeKernel kernel;
  kernel.open_tracepoint = [&](const sys::RawTracepointOpen& open, unsigned) {
    return open.cookie == 0 ? -ENOENT : FakeKernel::descriptor();
  };
  const sys::ScopedSyscalls scoped(kernel);
  const auto links = attach_raw_tp(KernelProgram{.fd = 3, .type = {17, 0}}, functions(2));
  ASSERT_TRUE(links);
  EXPECT_EQ(indices(links->refused), (std::set<std::size_t>{0}));
}

}  // namespace
}  // namespace usdt::backends
