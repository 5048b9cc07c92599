// SPDX-License-Identifier: BSD-2-Clause
// The abilities and habits of a kernel that plans depend on, as plain values: kernel_facts() (features.hpp) asks the
// running kernel, tests write them down. A default KernelFacts{} knows nothing and assumes the worst.
// Threads: plain values.
#pragma once

#include <cstdint>

#include "usdt/machine.hpp"

namespace usdt {
inline namespace v1 {

/// Tells how a kernel treats x86-64 multi-byte nops.
enum class NopOptimisation : std::uint8_t {
  none,   ///< every nop is a breakpoint: sit on the first one
  nop5,   ///< 6.18..: a nop5 becomes a call that writes below %rsp: never sit on one (truth rule 4)
  nop10,  ///< 7.2..: a nop10 is optimised safely: sit on the nop10 of `nop,nop10`
};

/// Lists what a kernel can do at functions, its own and those of files. kernel_abilities() asks the running one.
struct KernelAbilities {
  Machine machine = host_machine();  ///< the kernel's own
  bool perf_kprobe = true;           ///< CONFIG_KPROBE_EVENTS; false only where the kernel is seen to lack it
  bool kprobe_multi = false;         ///< 5.18, CONFIG_FPROBE
  bool kprobe_session = false;       ///< 6.10
  bool tracing = false;              ///< fentry and fexit: 5.5, arm64 6.4 or so
  bool tracing_session = false;      ///< fsession: 7.0
  bool tracing_multi = false;        ///< fentry, fexit and fsession: 7.2, x86-64
  bool uprobe_session = false;       ///< of functions in files: 6.13
  bool func_arg = false;             ///< bpf_get_func_arg(): 5.17
  bool tp_btf_func_arg = false;      ///< bpf_get_func_arg() in tp_btf programs: 7.2
  bool perf_cookies = false;         ///< attach cookies of perf events, uprobes and kprobe_multi: 5.15
  bool tracing_cookies = false;      ///< of trampolines: 5.19
  bool raw_tp_cookies = false;       ///< of raw tracepoints: 6.10
  bool kernel_btf = false;

  friend bool operator==(const KernelAbilities&, const KernelAbilities&) = default;
};

/// Describes the kernel that a plan is for. It is a plain value, so that planning stays a pure function. Facts that
/// were not asked are taken for the worst: nops are not safe to sit on, and nothing can be done.
struct KernelFacts {
  NopOptimisation nops = NopOptimisation::nop5;
  KernelAbilities abilities = {};
};

/// Tells what a hit at an attached site costs on one kernel. (SiteClass tells what the bytes are, whatever the kernel.)
enum class CostClass : std::uint8_t {
  trap,         ///< a breakpoint; the nop below it is emulated
  optimised,    ///< the kernel puts a call in place of the breakpoint, the cheapest kind
  emulated,     ///< a breakpoint; the instruction below it (push, jmp, call) is emulated, about as cheap as a nop
  single_step,  ///< a breakpoint; the instruction runs out of line under single-step, about 10 times a nop
  refused,      ///< planning leaves the site out
};

}  // namespace v1
}  // namespace usdt
