// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include <set>

#include "fake_syscalls.hpp"
#include "link/backend.hpp"

namespace usdt::backends {
namespace {

using test::FakeKernel;

struct Sites {
  explicit Sites(std::size_t n) : ref_ctrs(n, 0) {
    for (std::size_t i = 0; i < n; ++i) {
      offsets.push_back(0x1000 + i);
      cookies.push_back(i);
    }
  }
  [[nodiscard]] SiteArrays view() const { return {offsets, ref_ctrs, cookies}; }
  std::vector<std::uint64_t> offsets, ref_ctrs, cookies;
};

std::vector<std::uint64_t> offsets_of(const sys::LinkCreateUprobeMulti& attr) {
  const auto* first = reinterpret_cast<const std::uint64_t*>(attr.offsets);
  return {first, first + attr.cnt};
}

/// A kernel that refuses any batch with one of `bad` in it.
void refuse(FakeKernel& kernel, std::set<std::uint64_t> bad, int error) {
  kernel.link_multi = [bad = std::move(bad), error](const sys::LinkCreateUprobeMulti& attr) {
    for (const std::uint64_t offset : offsets_of(attr))
      if (bad.contains(offset)) return -error;
    return FakeKernel::descriptor();
  };
}

std::set<std::size_t> indices(const std::vector<Refusal>& refused) {
  std::set<std::size_t> all;
  for (const Refusal& refusal : refused) all.insert(refusal.index);
  return all;
}

const AttachTarget target{3, "/proc/self/fd/0", 0};

TEST(UprobeMulti, attaches_all_sites_of_a_file_by_one_link) {
  FakeKernel kernel;
  int calls = 0;
  kernel.link_multi = [&](const sys::LinkCreateUprobeMulti& attr) {
    ++calls;
    EXPECT_EQ(attr.cnt, 1000U);
    return FakeKernel::descriptor();
  };
  const sys::ScopedSyscalls scoped(kernel);
  const auto links = attach_uprobe_multi(target, Sites(1000).view());
  ASSERT_TRUE(links);
  EXPECT_EQ(links->fds.size(), 1U);
  EXPECT_EQ(calls, 1);
}

TEST(UprobeMulti, names_every_refused_site_and_attaches_the_others) {
  FakeKernel kernel;
  refuse(kernel, {0x1000, 0x1000 + 499, 0x1000 + 500, 0x1000 + 999}, sys::kEnotsupp);
  std::size_t attached = 0;
  auto inner = kernel.link_multi;
  kernel.link_multi = [&](const sys::LinkCreateUprobeMulti& attr) {
    const int result = inner(attr);
    if (result >= 0) attached = attr.cnt;
    return result;
  };
  const sys::ScopedSyscalls scoped(kernel);
  const auto links = attach_uprobe_multi(target, Sites(1000).view());
  ASSERT_TRUE(links) << links.error().message;
  EXPECT_EQ(indices(links->refused), (std::set<std::size_t>{0, 499, 500, 999}));
  EXPECT_EQ(attached, 996U);
  EXPECT_EQ(links->refused.front().os_error, sys::kEnotsupp);
}

TEST(UprobeMulti, finds_two_sites_that_are_at_odds_only_with_each_other) {
  FakeKernel kernel;
  kernel.link_multi = [](const sys::LinkCreateUprobeMulti& attr) {
    const auto offsets = offsets_of(attr);
    const std::set<std::uint64_t> all(offsets.begin(), offsets.end());
    return all.contains(0x1002) && all.contains(0x1007) ? -EINVAL : FakeKernel::descriptor();
  };
  const sys::ScopedSyscalls scoped(kernel);
  const auto links = attach_uprobe_multi(target, Sites(10).view());
  ASSERT_TRUE(links);
  EXPECT_EQ(links->refused.size(), 1U);
  EXPECT_EQ(links->fds.size(), 1U);
}

TEST(UprobeMulti, does_not_search_for_a_site_when_the_whole_request_is_at_fault) {
  for (const int error : {EPERM, ESRCH, EBADF, E2BIG, ENOSYS}) {
    FakeKernel kernel;
    int calls = 0;
    kernel.link_multi = [&](const auto&) { return ++calls, -error; };
    const sys::ScopedSyscalls scoped(kernel);
    const auto links = attach_uprobe_multi(target, Sites(64).view());
    ASSERT_FALSE(links);
    EXPECT_EQ(links.error().os_error, error);
    EXPECT_EQ(calls, 1);
  }
}

TEST(UprobeMulti, attaches_nothing_when_every_site_is_refused) {
  FakeKernel kernel;
  kernel.link_multi = [](const auto&) { return -EINVAL; };
  const sys::ScopedSyscalls scoped(kernel);
  const auto links = attach_uprobe_multi(target, Sites(5).view());
  ASSERT_TRUE(links);
  EXPECT_TRUE(links->fds.empty());
  EXPECT_EQ(links->refused.size(), 5U);
}

TEST(UprobeMulti, gives_up_at_once_where_the_kernel_is_out_of_memory_or_descriptors) {
  for (const int error : {ENOMEM, EMFILE}) {
    FakeKernel kernel;
    int calls = 0;
    kernel.link_multi = [&](const sys::LinkCreateUprobeMulti&) {
      ++calls;
      return -error;
    };
    const sys::ScopedSyscalls scoped(kernel);
    const auto links = attach_uprobe_multi(target, Sites(100).view());
    ASSERT_FALSE(links);
    EXPECT_EQ(links.error().os_error, error);
    EXPECT_EQ(calls, 1) << "no site is to blame: nothing to search for";
  }
}

TEST(PerfUprobe, gives_each_site_its_offset_cookie_and_semaphore) {
  FakeKernel kernel;
  std::vector<std::uint64_t> offsets, cookies, semaphores;
  kernel.open_event = [&](const perf_event_attr& attr, pid_t) {
    offsets.push_back(attr.config2);
    semaphores.push_back(attr.config >> 32);
    return FakeKernel::descriptor();
  };
  kernel.link_perf = [&](const sys::LinkCreatePerfEvent& attr) {
    cookies.push_back(attr.bpf_cookie);
    return FakeKernel::descriptor();
  };
  Sites sites(3);
  sites.ref_ctrs = {0, 0x4010, 0};
  const sys::ScopedSyscalls scoped(kernel);
  const auto links = attach_perf_uprobe(target, sites.view());
  if (!links) GTEST_SKIP() << "no uprobe event source here: " << links.error().message;
  EXPECT_EQ(offsets, sites.offsets);
  EXPECT_EQ(cookies, sites.cookies);
  EXPECT_EQ(semaphores, sites.ref_ctrs);
  EXPECT_EQ(links->fds.size(), 3U);
  EXPECT_EQ(links->events.size(), 3U);
}

TEST(PerfUprobe, leaves_out_a_refused_site_and_says_so_when_descriptors_run_out) {
  FakeKernel kernel;
  kernel.open_event = [](const perf_event_attr& attr, pid_t) {
    return attr.config2 == 0x1001 ? -EINVAL : FakeKernel::descriptor();
  };
  const sys::ScopedSyscalls scoped(kernel);
  const auto links = attach_perf_uprobe(target, Sites(3).view());
  if (!links) GTEST_SKIP() << "no uprobe event source here: " << links.error().message;
  EXPECT_EQ(indices(links->refused), (std::set<std::size_t>{1}));
  EXPECT_EQ(links->fds.size(), 2U);
  EXPECT_EQ(links->events.size(), 2U);

  kernel.open_event = [](const perf_event_attr&, pid_t) { return -EMFILE; };
  const auto none = attach_perf_uprobe(target, Sites(3).view());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::limit);
}

TEST(PerfUprobe, does_without_links_and_cookies_where_the_kernel_has_none) {
  FakeKernel kernel;
  std::vector<int> programs;
  kernel.link_perf = [](const sys::LinkCreatePerfEvent&) { return -EINVAL; };
  kernel.set_bpf = [&](int, int program) {
    programs.push_back(program);
    return 0;
  };
  Sites sites(2);
  sites.cookies = {0, 0};
  const sys::ScopedSyscalls scoped(kernel);
  const auto links = attach_perf_uprobe(target, sites.view());
  if (!links) GTEST_SKIP() << "no uprobe event source here: " << links.error().message;
  EXPECT_EQ(programs, (std::vector<int>{3, 3}));
  EXPECT_EQ(links->events.size(), 2U);
  EXPECT_TRUE(links->refused.empty());

  sites.cookies = {1, 2};
  const auto with_cookies = attach_perf_uprobe(target, sites.view());
  ASSERT_TRUE(with_cookies);
  EXPECT_EQ(with_cookies->refused.size(), 2U) << "a cookie that is lost would be a wrong value";
}

TEST(PerfUprobe, refuses_a_semaphore_the_interface_has_no_bits_for) {
  FakeKernel kernel;
  Sites sites(1);
  sites.ref_ctrs = {std::uint64_t{1} << 32};
  const sys::ScopedSyscalls scoped(kernel);
  const auto links = attach_perf_uprobe(target, sites.view());
  if (!links) GTEST_SKIP() << "no uprobe event source here: " << links.error().message;
  ASSERT_EQ(links->refused.size(), 1U);
  EXPECT_EQ(links->refused[0].os_error, EOVERFLOW);
}

}  // namespace
}  // namespace usdt::backends
