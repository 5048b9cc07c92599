// SPDX-License-Identifier: BSD-2-Clause
// Says what the kernel would refuse to attach to, before it does. Pure.
#pragma once

#include <string>
#include <string_view>

#include "kernel/catalogue.hpp"
#include "usdt/kernel.hpp"

namespace usdt::kernel {

/// Returns why a program of this kind cannot be attached to a function of the catalogue, in plain words; empty: it can.
/// `signature_refusal`: why a trampoline cannot pass this function's arguments on, if so.
[[nodiscard]] std::string why_not(const Catalogue& catalogue, const KernelFunction& function, KernelKind kind,
                                  std::string_view signature_refusal = {});

/// True for functions that are traced only if they are named: of each call of each other function they would be part,
/// or the kernel is not ready for programs there.
[[nodiscard]] bool not_in_globs(std::string_view name) noexcept;

/// True if only a perf kprobe reaches the function, since ftrace cannot trace it (or is not known to).
[[nodiscard]] inline bool needs_perf_kprobe(const KernelFunction& function) noexcept { return !function.ftrace; }

}  // namespace usdt::kernel
