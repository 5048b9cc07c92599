// SPDX-License-Identifier: BSD-2-Clause
// Arguments of kernel functions by every way, judged by registers that a program of our own reads by hand.
#include <unistd.h>

#include <map>
#include <optional>

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

std::string_view name_of_site(const AttachPlan& plan, Index<PlannedSite> site) {
  return function_of(plan, plan.sites[site])->name;
}

std::vector<std::string_view> names_of(const AttachPlan& plan) {
  std::vector<std::string_view> names;
  for (const Index<PlannedSite> site : plan.sites.indices()) names.push_back(name_of_site(plan, site));
  return names;
}

/// What the witness saw of the hit that was seen last. Interrupts call functions at any moment, also between the
/// reading of one side and that of the other, so that counts since the last comparison may agree about different hits.
/// Those since the beginning differ then, by the hits that only one side had been asked about.
class Pairs {
 public:
  Pairs(Own& witness, const std::vector<std::string_view>& names) : witness_(witness) {
    for (std::size_t i = 0; i < names.size(); ++i) sites_.try_emplace(names[i], Counted{i, 0, 0});
  }
  void begin() {
    for (auto& [name, site] : sites_) site.before = hits(site.number);
  }
  /// It was hit while the beginning was noted: who knows on which side of it.
  void leave_out(std::string_view name) { sites_.erase(name); }
  void count(std::string_view name) {
    if (const auto site = sites_.find(name); site != sites_.end()) ++site->second.hits;
  }
  /// None: there are hits that only one of both has seen.
  [[nodiscard]] std::optional<Seen> last_of(std::string_view name) {
    const auto site = sites_.find(name);
    if (site == sites_.end()) return std::nullopt;
    const auto seen = witness_.get<Seen>("seen", site->second.number);
    const bool whole = hits(site->second.number) == seen.hits;  // else it was written while it was read
    return whole && seen.hits - site->second.before == site->second.hits ? std::optional(seen) : std::nullopt;
  }

 private:
  struct Counted {
    std::size_t number;
    std::uint64_t before;
    std::uint64_t hits;
  };
  [[nodiscard]] std::uint64_t hits(std::size_t number) { return witness_.get<Seen>("seen", number).hits; }

  Own& witness_;
  std::map<std::string_view, Counted> sites_;
};

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
  Pairs pairs(witness, names_of(*witness_plan));
  take(*tracer);
  pairs.begin();
  hits_.clear();
  take(*tracer);
  for (const Hit& hit : hits_) pairs.leave_out(name_of_site(*planned, hit.site));
  std::set<std::string_view> functions;
  std::size_t right = 0;
  std::size_t wrong = 0;
  std::size_t unread = 0;
  const auto me = static_cast<std::uint32_t>(::gettid());
  for (const truth::Call& call : stage.calls()) {
    hits_.clear();
    static_cast<void>(call.run());
    take(*tracer);
    std::map<Index<PlannedSite>, const Hit*> last;
    for (const Hit& hit : hits_) {
      pairs.count(name_of_site(*planned, hit.site));
      const Hit*& newest = last[hit.site];
      if (!newest || hit.ts >= newest->ts) newest = &hit;
    }
    for (const auto& [site, hit] : last) {
      const std::string_view name = name_of_site(*planned, site);
      const std::optional<Seen> seen = pairs.last_of(name);
      if (!seen || hit->tid != me) continue;
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
        const std::uint64_t expected = n < kRegisters ? seen->registers[n] : seen->stack[place];
        if (cut(*bits, args[n].type.size) == cut(expected, args[n].type.size)) {
          ++right;
        } else if (++wrong < 20) {
          ADD_FAILURE() << fmt::format("{}: {} ({}) is {:#x}, the register {:#x}", name, args[n].name(),
                                       args[n].c_type(), *bits, expected);
        }
      }
      functions.insert(name);
    }
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
