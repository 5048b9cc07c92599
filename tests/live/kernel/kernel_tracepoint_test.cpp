// SPDX-License-Identifier: BSD-2-Clause
// Raw tracepoints.
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "kernel_ways.hpp"

namespace usdt::ways {
namespace {

class EachTracepoint : public KernelTest, public testing::WithParamInterface<const char*> {
 protected:
  [[nodiscard]] bool wants_functions() const override { return false; }
};
INSTANTIATE_TEST_SUITE_P(Kernel, EachTracepoint, testing::Values("raw_tp", "tp_btf"));

TEST_P(EachTracepoint, tells_number_and_result_of_system_calls) {
  if (!abilities().kernel_btf) GTEST_SKIP() << "no BTF";
  const auto selection = usdt::select({*KernelPattern::parse(fmt::format("{}:sys_enter", GetParam())),
                                       *KernelPattern::parse(fmt::format("{}:sys_exit", GetParam()))});
  ASSERT_TRUE(selection) << selection.error().message;
  const auto planned = plan_attach(*selection, facts(), options(Backend::automatic));
  ASSERT_TRUE(planned) << planned.error().message;
  {
    const auto tracer = start(*planned);
    if (!tracer) return;
    ::syscall(SYS_getpgid, 87'654);
    tracer->detach();
    tracer->drain(keep());
    bool entered = false;
    bool left = false;
    for (const Hit& hit : hits_) {
      const std::string& name = function_of(*planned, planned->sites[hit.site])->name;
      ASSERT_EQ(hit.values.size(), 2U);
      const auto second = bits_of(hit.values[1]);
      ASSERT_TRUE(second) << reason_of(hit.values[1]);
      entered |= name == "sys_enter" && *second == SYS_getpgid;
      left |= entered && name == "sys_exit" && *second == static_cast<std::uint64_t>(-ESRCH);
    }
    EXPECT_TRUE(entered);
    EXPECT_TRUE(left);
    tell("chosen", GetParam(), fmt::format("{}, {}", tracer->link().backend_text(), tracer->link().carrier_text()));
  }
  const bool cookies = abilities().perf_cookies;
  for (const Carrier carrier :
       {cookies ? Carrier::table : Carrier::ip_hash, cookies ? Carrier::per_link : Carrier::automatic}) {
    Own own("read_everything", *planned, {.arguments = 3}, {.carrier = carrier});
    ASSERT_FALSE(own.error()) << own.error()->message;
    ::syscall(SYS_getpgid, 87'655);
    EXPECT_GE(own.get("hits", 0), 2U);
    EXPECT_EQ(own.get("count"), 2U);
    EXPECT_EQ(own.get<std::int64_t>("errors", 1), 0);
    EXPECT_EQ(own.get<std::int64_t>("errors", 2), -ENOENT);
  }
}

}  // namespace
}  // namespace usdt::ways
