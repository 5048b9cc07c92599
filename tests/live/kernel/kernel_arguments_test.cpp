// SPDX-License-Identifier: BSD-2-Clause
// Functions of no, six, seven and more arguments, with a struct among them and with variable ones: each value is right,
// or an error with the reason.
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>

#include "kernel_ways.hpp"

namespace usdt::ways {
namespace {

struct Function {
  const char* name;
  std::size_t least;  ///< arguments it has
  std::size_t most;   ///< by version
  std::map<std::string, std::uint64_t> values;
  const char* error;  ///< how arguments that cannot be read begin
  std::function<void()> call;
};

std::uint64_t word(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

/// Six on x86-64 are all in registers, on arm64 eight.
const std::vector<Function>& functions() {
  static std::uint32_t one = 1, two = 2;
  static char bytes[128];
  static const int memory = static_cast<int>(::syscall(SYS_memfd_create, "usdt", 0));
#ifdef SYS_mmap2
  static const auto map = [] { ::syscall(SYS_mmap2, nullptr, 8192, PROT_READ, MAP_PRIVATE, memory, 3); };
#else
  static const auto map = [] { ::syscall(SYS_mmap, nullptr, 8192, PROT_READ, MAP_PRIVATE, memory, 3 * 4096); };
#endif
  static const std::vector<Function> all = {
      {"do_sched_yield", 0, 0, {}, nullptr, [] { ::sched_yield(); }},
      {"__sys_sendto",
       6,
       6,
       {{"fd", 9991},
        {"buff", word(bytes)},
        {"len", 47},
        {"flags", 0x40},
        {"addr", word(bytes + 64)},
        {"addr_len", 16}},
       nullptr,
       [] { ::syscall(SYS_sendto, 9991, bytes, 47, 0x40, bytes + 64, 16); }},
      {"do_futex",
       7,
       7,
       {{"uaddr", word(&one)}, {"op", 3}, {"val", 8}, {"uaddr2", word(&two)}, {"val2", 9}, {"val3", 0x3333}},
       nullptr,
       [] { ::syscall(SYS_futex, &one, FUTEX_REQUEUE, 8, 9L, &two, 0x3333); }},
      {"do_mmap", 8, 9, {{"len", 8192}, {"prot", PROT_READ}, {"flags", MAP_PRIVATE}, {"pgoff", 3}}, nullptr, map},
      {"__sys_bpf", 3, 5, {{"cmd", 1234}, {"size", 72}}, "uattr", [] { ::syscall(SYS_bpf, 1234, bytes, 72); }},
      {"seq_printf", 2, 2, {}, nullptr, [] {
         std::ifstream limits("/proc/self/limits");
         for (std::string line; std::getline(limits, line);) continue;
       }}};
  return all;
}

class EachArguments : public EachWay {
 protected:
  void expect_right(const Function& function, const AttachPlan& plan, Index<PlannedSite> site,
                    const std::vector<Hit>& hits);
  std::size_t right_ = 0;
  std::size_t errors_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Kernel, EachArguments, testing::ValuesIn(every_way()), name_of);

/// One of the hits has the values; others are calls within.
void EachArguments::expect_right(const Function& function, const AttachPlan& plan, Index<PlannedSite> site,
                                 const std::vector<Hit>& hits) {
  const std::vector<Arg>& args = plan.args[plan.sites[site].args];
  const auto count =
      static_cast<std::size_t>(std::count_if(args.begin(), args.end(), [](const Arg& arg) { return !arg.result; }));
  if (GetParam().has_arguments()) {
    EXPECT_GE(count, function.least);
    EXPECT_LE(count, function.most);
  }
  std::string wrong = "not reached";
  for (const Hit& hit : hits) {
    if (hit.site != site) continue;
    std::size_t right = 0;
    std::size_t errors = 0;
    std::string found;
    for (std::size_t n = 0; n < count; ++n) {
      const auto expected = function.values.find(std::string(args[n].name()));
      const auto bits = bits_of(hit.values[n]);
      if (function.error && args[n].name().starts_with(function.error)) {
        errors += !bits && !reason_of(hit.values[n]).empty();
        if (bits) found += fmt::format("{} has a value; ", args[n].name());
      } else if (!bits) {
        found += fmt::format("{}: {}; ", args[n].name(), reason_of(hit.values[n]));
      } else if (expected != function.values.end()) {
        if (cut(*bits, args[n].type.size) == cut(expected->second, args[n].type.size)) {
          ++right;
        } else {
          found += fmt::format("{} is {:#x}, not {:#x}; ", args[n].name(), *bits, expected->second);
        }
      }
    }
    wrong = found;
    if (!found.empty()) continue;
    right_ += right;
    errors_ += errors;
    if (count > 0) {
      EXPECT_EQ(right, function.values.size());
      EXPECT_EQ(errors > 0, function.error != nullptr);
    }
    break;
  }
  EXPECT_EQ(wrong, "") << function.name;
}

TEST_P(EachArguments, are_right_or_errors_however_many) {
  const Types types = abilities().kernel_btf ? Types::kernels : Types::ours;
  Names names;
  for (const Function& function : functions()) names.insert(function.name);
  const auto planned = plan(GetParam(), names, types);
  ASSERT_TRUE(planned) << planned.error().message;
  const auto tracer = start(*planned);
  if (!tracer) return;
  std::map<std::string, std::string> refused;
  for (const auto* list : {&planned->skipped, &tracer->link().refused()})
    for (const SkippedSite& skipped : *list) refused[planned->probes[skipped.probe].name] = skipped.reason;
  std::string attached;
  for (const Function& function : functions()) {
    const auto site = std::find_if(planned->sites.begin(), planned->sites.end(), [&](const PlannedSite& each) {
      return function_of(*planned, each)->name == function.name;
    });
    if (refused.contains(function.name)) {
      EXPECT_EQ(GetParam().kind().family, KernelFamily::trampoline) << refused[function.name];
      EXPECT_NE(refused[function.name], "");
      fmt::print("  {}: {}\n", function.name, refused[function.name]);
      continue;
    }
    if (site == planned->sites.end()) continue;  // not in this kernel
    take(*tracer);
    hits_.clear();
    function.call();
    take(*tracer);
    expect_right(function, *planned, Index<PlannedSite>(static_cast<std::size_t>(site - planned->sites.begin())),
                 hits_);
    attached += fmt::format("{}{}", attached.empty() ? "" : " ", function.name);
  }
  fmt::print("  {}\n", attached);
  tell("however many arguments", GetParam().text(),
       fmt::format("{} right, {} typed errors, {} functions refused", right_, errors_, refused.size()));
  EXPECT_NE(attached.find("__sys_sendto"), attached.npos);
}

}  // namespace
}  // namespace usdt::ways
