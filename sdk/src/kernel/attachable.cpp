// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/attachable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace usdt::kernel {
namespace {

/// kernel/bpf/verifier.c: btf_id_deny (35e3815fa810, 5.13, and what was added since): a trampoline itself calls them.
constexpr std::array<std::string_view, 9> kTrampolineDeny = {
    "___migrate_enable", "__migrate_enable",  "__rcu_read_lock",   "__rcu_read_unlock",     "migrate_disable",
    "migrate_enable",    "preempt_count_add", "preempt_count_sub", "rcu_read_unlock_strict"};

/// kernel/bpf/verifier.c: noreturn_deny (cfe816d469dc, 6.15 and stable kernels): behind them nothing runs any more.
/// Older kernels attach, and never free the trampoline. kthread_exit was on the list while it was a function.
constexpr std::array<std::string_view, 12> kNoReturn = {"__ia32_sys_exit",
                                                        "__ia32_sys_exit_group",
                                                        "__kunit_abort",
                                                        "__module_put_and_kthread_exit",
                                                        "__x64_sys_exit",
                                                        "__x64_sys_exit_group",
                                                        "do_exit",
                                                        "do_group_exit",
                                                        "kthread_complete_and_exit",
                                                        "kthread_exit",
                                                        "kunit_try_catch_throw",
                                                        "make_task_dead"};

/// A function that a trampoline calls behind its program, when the program's guard against recursion is open again:
/// traced, it calls itself until the stack ends (seen with 7.2, whose preemptible RCU gets there from any program that
/// was interrupted).
constexpr std::string_view kBehindGuard = "rcu_read_unlock_special";

/// Functions the kernel's tests leave out when they attach to everything (tools/testing/selftests/bpf/trace_helpers.c:
/// skip_entry): the idle loop, where RCU is not watching, the inside of RCU, and a call that is patched all the time.
constexpr std::array<std::string_view, 3> kNotInGlobs = {"arch_cpu_idle", "bpf_dispatcher_xdp_func", "default_idle"};

/// The part GCC or clang gave the name of a function they changed: ".isra.0"; empty for others.
std::string_view compiler_suffix(std::string_view name) noexcept {
  const std::size_t dot = name.find('.');
  return dot == name.npos || dot == 0 ? std::string_view() : name.substr(dot);
}

std::string why_no_kprobe(const KernelFunction& function) {
  if (function.ftrace) return {};
  if (function.denied) return "on the kprobe blacklist: code that runs while a kprobe is handled, or must not trap";
  // perf_event_open takes a name or an address; a name with several functions is refused (b022f0c7e404, 6.7) or means
  // the first of them.
  if (function.address == 0 && function.duplicate)
    return "its name is not unique, and the kernel hides addresses (kernel.kptr_restrict)";
  return {};
}

}  // namespace

bool not_in_globs(std::string_view name) noexcept {
  return name.starts_with("rcu_") || std::ranges::binary_search(kNotInGlobs, name);
}

std::string why_not(const Catalogue& catalogue, const KernelFunction& function, KernelKind kind,
                    std::string_view signature_refusal) {
  if (kind.family == KernelFamily::raw_tp) return {};
  if (kind.family == KernelFamily::tp_btf) return function.btf_id != 0 ? "" : "no type information (BTF)";
  if (kind.family == KernelFamily::kprobe) return why_no_kprobe(function);
  if (kind.family == KernelFamily::any) {
    std::string reason = why_no_kprobe(function);
    const KernelKind trampoline{KernelFamily::trampoline, kind.moment};
    return reason.empty() || why_not(catalogue, function, trampoline, signature_refusal).empty() ? std::string()
                                                                                                 : reason;
  }
  if (catalogue.knows_ftrace() && !function.ftrace) return "not traceable: notrace or not compiled with fentry";
  if (function.btf_id == 0) {
    const std::string_view suffix = compiler_suffix(function.name);
    if (!suffix.empty())
      return fmt::format("no type information (BTF): the compiler changed its parameters ({})", suffix);
    return "no type information (BTF)";
  }
  // bpf_check_attach_target(): kallsyms_lookup_name(), in a module find_kallsyms_symbol_value(): the first of that
  // name.
  if (function.duplicate) return "its name is not unique: the kernel resolves trampolines by name";
  const bool core = function.module.empty();
  if (core && function.name == kBehindGuard)
    return "trampolines call it themselves, unguarded: the kernel would die of it";
  if (core && std::ranges::binary_search(kTrampolineDeny, function.name))
    return "trampolines call it themselves: the kernel does not allow one on it";
  if (core && kind.moment != Moment::entry && std::ranges::binary_search(kNoReturn, function.name))
    return "it never returns";
  return std::string(signature_refusal);
}

}  // namespace usdt::kernel
