// SPDX-License-Identifier: BSD-2-Clause
// A function of this program that no note names, and what programs see at its ends.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "returns.bpf.hpp"
#include "usdt/usdt.hpp"

namespace usdt::calls {

/// 2 * argument + 1.
[[gnu::noinline]] long twice_and_one(long argument);

/// The function, with its one argument and its return value.
[[nodiscard]] Selection function_at(Moment moment);

/// Of returns.bpf.c.
struct Seen {
  std::uint64_t hits;
  std::uint64_t values[2];
  std::int64_t errors[2];
  std::uint64_t cookie;
};
[[nodiscard]] Seen seen(const LoadedObject& object, const char* variable);

class Calls : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "not root";
  }
  static AttachPlan plan(Moment moment) {
    PlanOptions options;
    options.scope = *OneProcess::of(::getpid());
    options.user_cookie = 77;
    const auto facts = kernel_facts({FunctionPattern{.moment = moment, .target = {}, .name = "twice_and_one"}});
    auto made = plan_attach(function_at(moment), facts, options);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }
  static Result<LoadedObject> load(Moment moment) { return BpfObject::open(returns_object())->load(plan(moment)); }
};

}  // namespace usdt::calls
