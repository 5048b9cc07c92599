// SPDX-License-Identifier: BSD-2-Clause
// Arguments of kernel functions by every way, judged by registers that a program of our own reads by hand.
#include <unistd.h>

#include <map>

#include "kernel_calls.hpp"
#include "kernel_ways.hpp"

namespace usdt::ways {
namespace {

/// Registers read by hand, as the calling conventions have it.
constexpr std::size_t kMostSites = 4096;
constexpr std::size_t kStackWords = 6;
#if defined(__aarch64__)
constexpr std::size_t kRegisters = 8;
#else
constexpr std::size_t kRegisters = 6;
#endif
struct Seen {
  std::uint64_t hits;
  std::uint64_t registers[8];
  std::uint64_t stack[kStackWords];
};

/// Functions of these prefixes, as many as the witness has room for; only those of the calls where each costs a link.
Names wide_names(const truth::Stage& stage, bool few) {
  Names names;
  for (const truth::Call& call : stage.calls())
    for (const truth::Reached& reached : call.functions) names.insert(reached.name);
  if (few) return names;
  for (const auto& entry : all_functions()->entries) {
    const std::string_view name = entry.function->name;
    for (const std::string_view prefix : {"do_", "vfs_", "ksys_", "__sys_", "security_", "unix_", "posix_", "filename_",
                                          "generic_", "ipc", "simple_", "shmem_", "sock_", "mm_", "vma_", "key"}) {
      if (name.starts_with(prefix) && names.size() < kMostSites - 200) names.insert(std::string(name));
    }
  }
  return names;
}

TEST_P(EachWay, agrees_with_registers_read_by_hand) {
#if defined(__i386__)
  GTEST_SKIP() << "without BTF nothing tells how wide arguments are";
#endif
  if (!GetParam().has_arguments()) GTEST_SKIP() << "registers of the return";
  const truth::Stage stage;
  const bool few = GetParam().one_by_one() || !abilities().kprobe_multi ||
                   (GetParam().backend == Backend::automatic && !abilities().tracing_multi);
  const auto names = wide_names(stage, few);
  const auto planned = plan(GetParam(), names);
  ASSERT_TRUE(planned) << planned.error().message;
  if (is_forced_elsewhere(GetParam(), *planned)) GTEST_SKIP() << "the backend it takes here has a test of its own";
  const Way by_hand{"kprobe", abilities().kprobe_multi ? Backend::kprobe_multi : Backend::perf_kprobe, nullptr};
  const auto witness_plan = plan(by_hand, names);
  ASSERT_TRUE(witness_plan) << witness_plan.error().message;
  ASSERT_LE(witness_plan->sites.size(), kMostSites);
  const auto tracer = start(*planned);
  if (!tracer) return;
  Own witness("witness", *witness_plan);
  ASSERT_FALSE(witness.error()) << witness.error()->message;
  std::map<std::string, std::uint32_t, std::less<>> witness_of;
  for (const Index<PlannedSite> site : witness_plan->sites.indices())
    witness_of.try_emplace(function_of(*witness_plan, witness_plan->sites[site])->name, site.value);

  take(*tracer);
  hits_.clear();
  std::vector<std::uint64_t> before(kMostSites);
  for (std::size_t i = 0; i < kMostSites; ++i) before[i] = witness.get<Seen>("seen", i).hits;
  std::set<std::string_view> functions;
  std::size_t right = 0;
  std::size_t wrong = 0;
  std::size_t unread = 0;
  const auto me = static_cast<std::uint32_t>(::gettid());
  for (const truth::Call& call : stage.calls()) {
    static_cast<void>(call.run());
    take(*tracer);
    std::map<Index<PlannedSite>, std::pair<std::size_t, const Hit*>> last;
    for (const Hit& hit : hits_) {
      auto& [count, newest] = last[hit.site];
      ++count;
      if (!newest || hit.ts >= newest->ts) newest = &hit;
    }
    for (const auto& [site, known] : last) {
      const auto& [count, hit] = known;
      const std::string& name = function_of(*planned, planned->sites[site])->name;
      const auto other = witness_of.find(name);
      if (other == witness_of.end() || hit->tid != me) continue;
      const Seen seen = witness.get<Seen>("seen", other->second);
      if (seen.hits - before[other->second] != count) continue;  // one of them has hits of the other's reading
      const std::vector<Arg>& args = planned->args[planned->sites[site].args];
      for (std::size_t n = 0; n < args.size() && !args[n].result; ++n) {
        const std::size_t place = n - kRegisters;
        if (args[n].type.size > 8 || args[n].c_type().starts_with("struct ") != args[n].c_type().ends_with("*")) break;
        if (n >= kRegisters && place >= kStackWords) break;
        const auto bits = bits_of(hit->values[n]);
        if (!bits) {
          ++unread;
          break;
        }
        const std::uint64_t expected = n < kRegisters ? seen.registers[n] : seen.stack[place];
        if (cut(*bits, args[n].type.size) == cut(expected, args[n].type.size)) {
          ++right;
        } else if (++wrong < 20) {
          ADD_FAILURE() << fmt::format("{}: {} ({}) is {:#x}, the register {:#x}", name, args[n].name(),
                                       args[n].c_type(), *bits, expected);
        }
      }
      functions.insert(name);
    }
    for (const Hit& hit : hits_) {
      const auto other = witness_of.find(function_of(*planned, planned->sites[hit.site])->name);
      if (other != witness_of.end()) before[other->second] = witness.get<Seen>("seen", other->second).hits;
    }
    hits_.clear();
  }
  fmt::print("  {} of {} functions hit, {} arguments without value\n", functions.size(), tracer->link().attached(),
             unread);
  tell("witness", GetParam().text(),
       fmt::format("{} functions, {} arguments, {} wrong", functions.size(), right, wrong));
  EXPECT_EQ(wrong, 0U);
  EXPECT_GE(right, 100U);
}

}  // namespace
}  // namespace usdt::ways
