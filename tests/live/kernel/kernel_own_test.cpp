// SPDX-License-Identifier: BSD-2-Clause
// A program of one's own at kernel functions, the same text for every way.
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>

#include "kernel_ways.hpp"

namespace usdt::ways {
namespace {

constexpr std::size_t kMost = 10;  // MOST of kernel_helpers.bpf.c

class EachOwn : public EachWay {};
INSTANTIATE_TEST_SUITE_P(Kernel, EachOwn, testing::ValuesIn(every_way()), name_of);

TEST_P(EachOwn, program_reads_arguments_and_cookies) {
  const Way& way = GetParam();
  for (const Carrier carrier : {Carrier::automatic, Carrier::table, Carrier::per_link, Carrier::cookie}) {
    SCOPED_TRACE(to_string(carrier));
    if (way.backend == Backend::automatic && carrier != Carrier::automatic) break;  // another way has them all
    const bool is_another = way.backend != Backend::automatic && abilities().perf_cookies;
    if (carrier == Carrier::automatic && is_another) continue;
    auto how = options(way.backend);
    how.user_cookie_of = [](const PointName& point) { return point.name.size() * 1000; };
    auto planned = plan_attach(select(way.prefix, {kOneArgument, "vfs_getxattr"}), facts(), how);
    ASSERT_TRUE(planned) << planned.error().message;
    Own own("read_everything", *planned, {.arguments = abilities().kernel_btf ? 3U : 10U}, {.carrier = carrier});
    if (own.error()) {
      if (!abilities().perf_cookies) {
        EXPECT_NE(carrier, Carrier::automatic) << own.error()->message;
        continue;  // by address is all there is
      }
      // Cookies that differ do not fit one.
      EXPECT_EQ(carrier, Carrier::cookie) << own.error()->message;
      EXPECT_EQ(own.error()->kind, ErrorKind::limit) << own.error()->message;
      continue;
    }
    call_with(1'234'567);
    fmt::print("  carrier {} {}={}\n", way.text(), to_string(carrier), own.link().carrier_text());
    EXPECT_EQ(own.get("cookie"), std::strlen(kOneArgument) * 1000);
    const Index<PlannedSite> site(own.get("site_number"));
    ASSERT_TRUE(planned->sites.contains(site));
    EXPECT_EQ(function_of(*planned, planned->sites[site])->name, kOneArgument);
    const bool call = way.kind().moment == Moment::both;
    const bool slots = planned->groups[0].source != USDT_SOURCE_KERNEL;
    EXPECT_EQ(own.get("hits", 0), way.at_entry() ? 1U : 0U);
    EXPECT_EQ(own.get("hits", 1), way.at_return() ? 1U : 0U);
    // Without types, all the words that may be arguments.
    const auto& args = planned->args[planned->sites[site].args];
    const auto count =
        static_cast<std::size_t>(std::count_if(args.begin(), args.end(), [](auto& a) { return !a.result; }));
    if (abilities().kernel_btf) {
      EXPECT_EQ(count, way.at_entry() || slots ? 1U : 0U);
    }
    constexpr std::size_t end = kMost;
    if (way.at_entry()) {
      EXPECT_EQ(own.get<std::int64_t>("errors", 0), 0);
      EXPECT_EQ(own.get("values", 0), 1'234'567U);
      EXPECT_EQ(own.get<std::int64_t>("errors", count), call ? -ENODATA : -ENOENT);
    }
    if (way.at_return()) {
      EXPECT_EQ(own.get<std::int64_t>("errors", end + count), 0);
      EXPECT_EQ(cut(own.get("values", end + count), sizeof(long)),
                cut(static_cast<std::uint64_t>(kItsResult), sizeof(long)));
      EXPECT_EQ(own.get<std::int64_t>("errors", end + count + 1), -ENOENT);
      if (count > 0) {
        EXPECT_EQ(own.get<std::int64_t>("errors", end), slots ? 0 : -ENODATA);
        EXPECT_EQ(own.get("values", end), slots ? 1'234'567U : 0U);
      }
    }
  }
}

TEST_P(EachOwn, program_reads_what_is_behind_a_struct_passed_by_value) {
  const Way& way = GetParam();
  auto planned = plan(way, {"__sys_bpf"});
  if (!planned || planned->args[0].size() < 3 || planned->args[0][1].readable()) GTEST_SKIP() << "no such argument";
  if (!way.has_arguments()) GTEST_SKIP() << "registers of the return";
  const auto arguments = static_cast<std::uint32_t>(planned->args[0].size());
  Own own("read_everything", *planned, {.arguments = arguments});
  ASSERT_FALSE(own.error()) << own.error()->message;
  const auto before = own.get("hits", 0);
  char nothing[72] = {};
  ASSERT_EQ(::syscall(SYS_bpf, 1234, nothing, sizeof(nothing)), -1);
  const std::int64_t result = -errno;
  EXPECT_EQ(own.get("hits", 0) - before, way.at_entry() ? 1U : 0U);
  const std::size_t at = way.at_entry() ? 0 : kMost;
  EXPECT_EQ(own.get<std::int64_t>("errors", at), 0);
  EXPECT_EQ(own.get("values", at), 1234U);
  EXPECT_EQ(own.get<std::int64_t>("errors", at + 1), -EOPNOTSUPP);
  EXPECT_EQ(own.get<std::int64_t>("errors", at + 2), 0);
  EXPECT_EQ(own.get("values", at + 2), sizeof(nothing));
  const std::size_t last = planned->args[0].size() - 1;
  if (!way.at_return()) return;
  EXPECT_EQ(own.get<std::int64_t>("errors", kMost + last), 0);
  EXPECT_EQ(own.get<std::int64_t>("values", kMost + last), result);
}

TEST_P(EachOwn, program_reads_text_of_both_address_spaces) {
  const Way& way = GetParam();
  if (!way.at_entry() || !abilities().kernel_btf) GTEST_SKIP() << "arguments of the entry with names are wanted";
  if (way.backend == Backend::automatic) GTEST_SKIP() << "the backend it takes here has a test of its own";
  const auto text_of = [&](const char* function, const char* argument, const std::function<void()>& call) {
    auto planned = plan(way, {function});
    if (!planned) return planned.error().message;
    for (std::uint32_t n = 0; n < planned->args[0].size(); ++n) {
      if (planned->args[0][n].name() != argument) continue;
      Own own("read_everything", *planned, {.arguments = 0, .text = n});
      if (own.error()) return own.error()->message;
      call();
      return own.text();
    }
    return std::string("no such argument");
  };
  EXPECT_EQ(text_of("do_sys_openat2", "filename", [] { ::syscall(SYS_openat, AT_FDCWD, "/tmp/usdt none", 0, 0); }),
            "/tmp/usdt none");
  EXPECT_EQ(text_of("vfs_getxattr", "name",
                    [] {
                      char value[8];
                      ::getxattr("/tmp", "user.usdt-truth", value, sizeof(value));
                    }),
            "user.usdt-truth");
}

}  // namespace
}  // namespace usdt::ways
