// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>

namespace usdt {

/// What a running kernel may offer.
enum class Feature : std::uint8_t {
  uprobe_multi,      ///< one link for all sites of a file: 6.6, commit 89ae89f53d20
  uprobe_multi_pid,  ///< its pid filter means the process, not one thread: 6.10, commit 46ba0e49b642
  attach_cookie,     ///< BPF attach cookies on perf uprobes: 5.15, commit 7adfc6c9b315
  ref_ctr,           ///< semaphores kept by the kernel: 4.20, commit 1cc33161a83d
  nop5,              ///< optimises nop5 with a call that writes below %rsp: 6.18 until reworked
  nop10,             ///< optimises nop10 safely: 7.2
  kernel_btf,        ///< type information of the running kernel: 5.4, commit 341dfcf8d78e, CONFIG_DEBUG_INFO_BTF
  kprobe_multi,      ///< one link for many kernel functions: 5.18, commit 0dcac2725406, CONFIG_FPROBE
  kprobe_session,    ///< the same, both ends of a call in one program: 6.10, commit 535a3692ba72
  tracing,           ///< BPF trampolines (fentry, fexit): 5.5, arm64 later
  tracing_session,   ///< fsession, both ends of a call in one program: 7.0
  tracing_multi,     ///< one link for many trampolines: 7.2, x86-64
  func_arg,          ///< bpf_get_func_arg() in them: 5.17, commit f92c1e183604
  tp_btf_func_arg,   ///< the same in tp_btf programs: 7.2
  tracing_cookie,    ///< attach cookies of trampolines: 5.19, commit 2fcc82411e74
  raw_tp_cookie,     ///< attach cookies of raw tracepoints: 6.10, commit 68ca5d4eebb8
  sleepable_uprobe,  ///< programs on sites of files may wait for pages: 6.0
};

}  // namespace usdt
