// SPDX-License-Identifier: BSD-2-Clause
// A row for each feature, and the functions that ask the running kernel for it. Private to features/.
#pragma once

#include <cstdint>

#include "usdt/features.hpp"

namespace usdt::features {

/// The table is in features.cpp.
struct FeatureRow {
  Feature feature;
  FeatureInfo info;
  FeatureState (*probe)(const FeatureRow& row);
};

// At sites of files.
/// A link of enum bpf_attach_type `attach_type`, as uprobe_multi has them.
[[nodiscard]] FeatureState probe_uprobe_link(const FeatureRow& row, std::uint32_t attach_type);
[[nodiscard]] FeatureState probe_uprobe_multi_pid(const FeatureRow& row);
[[nodiscard]] FeatureState probe_attach_cookie(const FeatureRow& row);
[[nodiscard]] FeatureState probe_sleepable_uprobe(const FeatureRow& row);
[[nodiscard]] FeatureState probe_growing_hash(const FeatureRow& row);
[[nodiscard]] FeatureState probe_ref_ctr(const FeatureRow& row);
/// `telling_errno`: what uprobe(2) says, called `name`.
[[nodiscard]] FeatureState probe_nop(const FeatureRow& row, int telling_errno, const char* name);

// At kernel functions and raw tracepoints.
[[nodiscard]] FeatureState probe_kernel_btf(const FeatureRow& row);
/// A link of `attach_type`, as kprobe_multi has them.
[[nodiscard]] FeatureState probe_kprobe_link(const FeatureRow& row, std::uint32_t attach_type);
/// Asks for a trampoline of `attach_type`.
[[nodiscard]] FeatureState probe_trampoline(const FeatureRow& row, std::uint32_t attach_type);
[[nodiscard]] FeatureState probe_tracing_multi(const FeatureRow& row);
/// A helper, called by the instruction `call`, in fentry programs.
[[nodiscard]] FeatureState probe_fentry_helper(const FeatureRow& row, std::uint64_t call);
[[nodiscard]] FeatureState probe_tp_btf_func_arg(const FeatureRow& row);
[[nodiscard]] FeatureState probe_raw_tp_cookie(const FeatureRow& row);

}  // namespace usdt::features
