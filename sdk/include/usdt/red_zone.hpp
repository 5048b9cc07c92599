// SPDX-License-Identifier: BSD-2-Clause
// A self-test of the running kernel: does a probe on each kind of nop leave the red zone of a leaf function intact?
// (Linux 6.18 optimises a nop5 into a call that writes there.) test_red_zone() needs the privilege to trace.
//     for (const usdt::RedZoneTest& test : usdt::test_red_zone()) print(to_string(test.form), to_string(test.intact));
// Threads: any. It forks a child and waits for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/features.hpp"
#include "usdt/kernel_facts.hpp"

namespace usdt {
inline namespace v1 {

/// Names the nops of x86-64 that probes are compiled as.
enum class NopForm : std::uint8_t { nop, nop5, nop10 };
/// Returns "nop", "nop5" or "nop10".
[[nodiscard]] std::string_view to_string(NopForm form) noexcept;

/// Reports what a probe on one kind of nop did to a leaf function of this process's own code.
struct RedZoneTest {
  NopForm form = NopForm::nop;
  /// Whether the red zone, the 128 bytes below %rsp that a leaf function may use (System V ABI), outlived every call.
  Answer intact = Answer::unknown;
  /// The kind of probe that the site became, read back from its bytes; `refused`: the kernel takes no probe on this
  /// nop. Nothing: it was not found out.
  std::optional<CostClass> cost;
  std::uint32_t calls = 0;        ///< made with the probe attached
  std::uint32_t overwritten = 0;  ///< calls after which some of the 128 bytes had changed
  std::string detail;             ///< how it was found out, or why not ("EPERM from BPF_PROG_LOAD")
};

/// Attaches a probe to each kind of nop in a function of this library, in a forked child only, and calls it `calls`
/// times. One uprobe_multi link with an empty program, or a perf event where the kernel has no such links. Needs the
/// privilege to trace; without it every answer is `unknown`. About 50 ms each. Empty on machines other than x86-64,
/// which have neither a red zone nor such nops.
[[nodiscard]] std::vector<RedZoneTest> test_red_zone(std::uint32_t calls = 1000);

}  // namespace v1
}  // namespace usdt
