// SPDX-License-Identifier: BSD-2-Clause
// Functions of a module, reached by values that the test chose; a module that goes away.
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <thread>

#include "kernel_ways.hpp"

namespace usdt::ways {
namespace {

/// The guests of tests/vm have this one; it makes an interface when it is loaded.
constexpr const char* kFile = "/modules/dummy.ko";
constexpr const char* kInterface = "dummy0";

/// 0, or the errno.
int load_module() {
  const int file = ::open(kFile, O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno;
  const int error = ::syscall(SYS_finit_module, file, "", 0) == 0 ? 0 : errno;
  ::close(file);
  return error;
}
int unload_module() { return ::syscall(SYS_delete_module, "dummy", O_NONBLOCK) == 0 ? 0 : errno; }
/// Links that are closed give up the module later: trampolines when no task runs in them any more.
int unload_module_soon() {
  int error = unload_module();
  for (int i = 0; (error == EAGAIN || error == EBUSY) && i < 600; ++i) {
    std::this_thread::sleep_for(50ms);
    error = unload_module();
  }
  return error;
}

void bring_up() {
  std::ofstream("/proc/sys/net/ipv6/conf/dummy0/disable_ipv6") << "1";  // no packets but ours
  const int any = ::socket(AF_INET, SOCK_DGRAM, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, kInterface);
  request.ifr_flags = IFF_UP | IFF_NOARP;
  EXPECT_EQ(::ioctl(any, SIOCSIFFLAGS, &request), 0) << std::strerror(errno);
  ::close(any);
}

void set_carrier(bool on) {
  std::ofstream file("/sys/class/net/dummy0/carrier");
  file << (on ? "1" : "0") << std::flush;
  EXPECT_TRUE(file.good());
}

void send_packets(int count) {
  const int wire = ::socket(AF_PACKET, SOCK_RAW, 0);
  sockaddr_ll to{};
  to.sll_family = AF_PACKET;
  to.sll_ifindex = static_cast<int>(::if_nametoindex(kInterface));
  const char frame[77] = {};
  for (int i = 0; i < count; ++i)
    EXPECT_EQ(::sendto(wire, frame, sizeof(frame), 0, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 77)
        << std::strerror(errno);
  ::close(wire);
}

class EachModule : public EachWay {
 protected:
  [[nodiscard]] bool wants_functions() const override { return false; }
  void SetUp() override {
    EachWay::SetUp();
    if (IsSkipped()) return;
    if (const int error = load_module()) GTEST_SKIP() << "cannot load " << kFile << ": " << std::strerror(error);
    loaded_ = true;
  }
  void TearDown() override {
    if (loaded_) unload_module_soon();
    EachWay::TearDown();
  }

  /// Functions of the module, and the kernel's own that calls one of them with the same values.
  Result<AttachPlan> plan_module() {
    const auto selection =
        usdt::select({*KernelPattern::parse(fmt::format("{}:dummy:dummy_*", GetParam().prefix)),
                      *KernelPattern::parse(fmt::format("{}:vmlinux:*_change_carrier", GetParam().prefix))});
    if (!selection) return fail(selection.error());
    return plan_attach(*selection, facts(), options(GetParam().backend));
  }
  /// Trampolines want types, which the kernel has for modules since 5.11.
  [[nodiscard]] bool untyped() const {
    return GetParam().kind().family == KernelFamily::trampoline && ::access("/sys/kernel/btf/dummy", F_OK) != 0;
  }
  std::vector<const Hit*> hits_of(const AttachPlan& plan, std::string_view module, std::string_view name) const {
    std::vector<const Hit*> found;
    for (const Hit& hit : hits_) {
      const PlannedFunction& function = *function_of(plan, plan.sites[hit.site]);
      if (function.module == module && function.name.ends_with(name)) found.push_back(&hit);
    }
    return found;
  }

 private:
  bool loaded_ = false;
};
INSTANTIATE_TEST_SUITE_P(Kernel, EachModule, testing::ValuesIn(every_way()), name_of);

TEST_P(EachModule, has_functions_like_those_of_the_kernel) {
  if (untyped()) GTEST_SKIP() << "this kernel has no types of modules";
  const Way& way = GetParam();
  const auto planned = plan_module();
  ASSERT_TRUE(planned) << planned.error().message;
  bring_up();
  auto tracer = start(*planned);
  if (!tracer) return;
  const std::size_t attached = tracer->link().attached();
  send_packets(3);  // first: the queue comes back a while after the carrier
  set_carrier(false);
  set_carrier(true);
  finish(*tracer);
  const auto changes = hits_of(*planned, "dummy", "dummy_change_carrier");
  auto callers = hits_of(*planned, "", "netif_change_carrier");  // which dev_change_carrier() calls, if any
  if (callers.empty()) callers = hits_of(*planned, "", "dev_change_carrier");
  const auto packets = hits_of(*planned, "dummy", "dummy_xmit");
  tell("module", way.text(),
       fmt::format("{} functions, {} hits{}", attached, changes.size() + callers.size() + packets.size(),
                   ::access("/sys/kernel/btf/dummy", F_OK) == 0 ? "" : ", without types"));
  ASSERT_EQ(changes.size(), 2U);
  ASSERT_EQ(callers.size(), 2U);
  EXPECT_EQ(packets.size(), 3U);
  for (std::size_t i = 0; i < 2; ++i) {
    if (way.at_return()) {
      EXPECT_EQ(cut(bits_of(changes[i]->values.back()).value_or(1), 4), 0U);
    }
    if (!way.has_arguments()) continue;
    ASSERT_GE(changes[i]->values.size(), 2U);
    EXPECT_EQ(cut(bits_of(changes[i]->values[1]).value_or(7), 1), i);
    EXPECT_EQ(cut(bits_of(callers[i]->values[1]).value_or(7), 1), i);
    // The device, which the kernel hands over.
    EXPECT_EQ(bits_of(changes[i]->values[0]), bits_of(callers[i]->values[0]));
  }
  for (const Hit* packet : packets) {
    if (way.at_return()) {
      EXPECT_EQ(cut(bits_of(packet->values.back()).value_or(1), 4), 0U);
    }
    if (way.has_arguments()) {
      EXPECT_EQ(bits_of(packet->values[1]), bits_of(changes[0]->values[0]));
    }
  }
  tracer.reset();  // since 6.4 its programs hold the module, attached or not
  EXPECT_EQ(unload_module_soon(), 0) << "something is still attached";
}

TEST_P(EachModule, may_be_unloaded_meanwhile) {
  if (GetParam().at_return() || GetParam().backend == Backend::automatic)
    GTEST_SKIP() << "one way of each backend is enough";
  if (untyped()) GTEST_SKIP() << "this kernel has no types of modules";
  const auto planned = plan_module();
  ASSERT_TRUE(planned) << planned.error().message;
  {
    const auto tracer = start(*planned);
    if (!tracer) return;
    const int while_attached = unload_module();
    fmt::print("  module unloaded while attached {}={}\n", GetParam().text(),
               while_attached ? std::strerror(while_attached) : "yes");
    if (while_attached != 0) {  // it goes on as before
      bring_up();
      set_carrier(false);
    }
    finish(*tracer);
    for (const ProbeCounts& counts : tracer->counts()) expect_whole(counts);
  }
  if (const int error = unload_module_soon()) {
    EXPECT_EQ(error, ENOENT);
  }
  // Planned before, attached to after: the kernel's own function is.
  const auto late = Tracer::start(*planned);
  ASSERT_TRUE(late) << late.error().message;
  EXPECT_GT(late->link().attached(), 0U);
  EXPECT_EQ(late->link().refused().size(), planned->sites.size() - late->link().attached());
  for (const SkippedSite& refused : late->link().refused()) EXPECT_FALSE(refused.reason.empty());
  if (GetParam().backend != Backend::perf_kprobe) return;  // the same for all
  const auto gone = plan_module();
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().kind, ErrorKind::not_found) << gone.error().message;
}

}  // namespace
}  // namespace usdt::ways
