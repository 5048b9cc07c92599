// SPDX-License-Identifier: BSD-2-Clause
// The kernel's stack at a hit. What a return probe by perf sees is the reference: the caller is where it returns to.
#include <fmt/ranges.h>

#include <algorithm>

#include "kernel_ways.hpp"

namespace usdt::ways {
namespace {

class EachStack : public EachWay {
 protected:
  static constexpr std::uint32_t kDepth = 6;

  /// Of a call of kOneArgument, by symbols: "keyctl_revoke_key+0x0".
  std::vector<std::string> stack_by(const Way& way) {
    const auto planned = plan(way, {kOneArgument});
    if (!planned) {
      ADD_FAILURE() << planned.error().message;
      return {};
    }
    const auto tracer = start(*planned, {.kernel_stack_depth = kDepth});
    if (!tracer) return {};
    call_with(1'000'001);
    std::vector<std::vector<std::string>> stacks;
    const auto keep_stack = [&](const Event& event) {
      const auto stack = event.kernel_stack();
      if (!stack) {
        ADD_FAILURE() << stack.error().message;
        return;
      }
      auto& names = stacks.emplace_back();
      for (const std::uint64_t address : *stack) names.push_back(symbols_.name(address));
    };
    while (tracer->poll(keep_stack, 0ms).value_or(0) > 0) {
    }
    tracer->detach();
    tracer->drain(keep_stack);
    EXPECT_EQ(stacks.size(), 1U);
    return stacks.empty() ? std::vector<std::string>() : stacks.front();
  }

 private:
  KernelSymbols symbols_;
};
INSTANTIATE_TEST_SUITE_P(Kernel, EachStack, testing::ValuesIn(every_way()), name_of);

TEST_P(EachStack, is_the_function_and_then_the_way_to_it) {
  constexpr Way reference{"kretprobe", Backend::perf_kprobe, nullptr};
  const std::vector<std::string> callers = stack_by(reference);
  // x86 unwinds through the return address that a kretprobe replaced since 5.16: before, what is compared
  // with ends there.
  if (callers.size() < 2 && !abilities().kprobe_multi) GTEST_SKIP() << "this kernel's return probes have no stack";
  std::vector<std::string> found = stack_by(GetParam());
  ASSERT_GE(callers.size(), 2U);
  ASSERT_GE(found.size(), 2U);
  const std::string text = fmt::format("{} and at its return {}", fmt::join(found, " "), fmt::join(callers, " "));
  // At its end a function is left; trampolines of arm64 still have its frame then.
  const Way& way = GetParam();
  const bool at_end = way.at_return() && (!way.at_entry() || way.kind().family == KernelFamily::trampoline);
  const bool left = at_end && !found.front().starts_with(kOneArgument);
  if (!left) {
    EXPECT_TRUE(found.front().starts_with(fmt::format("{}+0x", kOneArgument))) << text;
    found.erase(found.begin());
  }
  const std::size_t both = std::min(found.size(), callers.size());
  EXPECT_TRUE(std::equal(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(both), callers.begin())) << text;
}

}  // namespace
}  // namespace usdt::ways
