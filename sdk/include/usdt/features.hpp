// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/plan.hpp"

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
};

enum class Answer : std::uint8_t { yes, no, unknown };

/// One probed feature. `detail` says how it was found out, or why it could not be ("EPERM from bpf(2)").
struct FeatureState {
  Feature feature;
  Answer answer = Answer::unknown;
  std::string detail;
};

[[nodiscard]] std::string_view to_string(Feature feature) noexcept;
[[nodiscard]] std::string_view to_string(Answer answer) noexcept;
/// "uprobe_multi" -> Feature::uprobe_multi; not_found lists the names.
[[nodiscard]] Result<Feature> feature_by_name(std::string_view name);

/// Asks the kernel. Certain answers are kept for the process, "unknown" is asked again.
[[nodiscard]] FeatureState probe_feature(Feature feature);
/// All of them, in declaration order.
[[nodiscard]] std::vector<FeatureState> probe_features();
/// From now on `feature` is answered "no", so that its fallback can be tried (as bpftrace's BPFnofeature does).
void disable_feature(Feature feature);

/// The value PlanOptions wants, from nop5 and nop10.
[[nodiscard]] NopOptimisation nop_optimisation();

}  // namespace usdt
