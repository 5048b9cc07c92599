// SPDX-License-Identifier: BSD-2-Clause
// The names of kernel abilities that decide how points are attached. features.hpp asks the running kernel for them:
// probe_feature(), probe_features(), and feature_info(), which knows since when each exists.
#pragma once

#include <cstdint>

namespace usdt {
inline namespace v1 {

/// Names what a running kernel may offer. feature_info() tells since when.
enum class Feature : std::uint8_t {
  uprobe_multi,      ///< one link for all sites of a file
  uprobe_multi_pid,  ///< its pid filter means the process, not one thread
  attach_cookie,     ///< BPF attach cookies on perf uprobes
  ref_ctr,           ///< semaphores kept by the kernel
  nop5,              ///< optimises nop5 with a call that writes below %rsp
  nop10,             ///< optimises nop10 safely
  kernel_btf,        ///< type information of the running kernel
  kprobe_multi,      ///< one link for many kernel functions
  kprobe_session,    ///< one link for many kernel functions, both ends of a call in one program
  tracing,           ///< BPF trampolines (fentry, fexit)
  tracing_session,   ///< fsession, both ends of a call in one program
  tracing_multi,     ///< one link for many trampolines
  func_arg,          ///< bpf_get_func_arg() in trampolines
  tp_btf_func_arg,   ///< bpf_get_func_arg() in tp_btf programs
  tracing_cookie,    ///< attach cookies of trampolines
  raw_tp_cookie,     ///< attach cookies of raw tracepoints
  sleepable_uprobe,  ///< programs on sites of files may wait for pages
  growing_hash,      ///< hash maps of tracing programs may allocate an entry when it is added
  uprobe_session,    ///< both ends of a call of a function in a file in one program
};

}  // namespace v1
}  // namespace usdt
