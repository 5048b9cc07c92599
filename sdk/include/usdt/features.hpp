// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/backend.hpp"
#include "usdt/feature.hpp"
#include "usdt/kernel_facts.hpp"
#include "usdt/pattern.hpp"

namespace usdt {
inline namespace v1 {

enum class Answer : std::uint8_t { yes, no, unknown };

/// One probed feature. `detail` says how it was found out, or why it could not be ("EPERM from bpf(2)").
struct FeatureState {
  Feature feature;
  Answer answer = Answer::unknown;
  std::string detail;
};

/// One feature, whatever the running kernel.
struct FeatureInfo {
  std::string_view name;    ///< "uprobe_multi"
  std::string_view since;   ///< the first kernel, and what else it needs: "5.18 with CONFIG_FPROBE"
  std::string_view commit;  ///< of the kernel's mainline, 12 digits; empty: not one alone
};
[[nodiscard]] const FeatureInfo& feature_info(Feature feature) noexcept;
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
/// What a kernel of `release` ("6.18.44-amd64") has by FeatureInfo::since, with the options that distributions set. Of
/// a text that is no release: unknown. Reads nothing.
[[nodiscard]] Answer feature_of_release(Feature feature, std::string_view release, Machine machine) noexcept;
/// From now on what the kernel does not tell this process of a feature (for want of privilege, say) is answered by its
/// release, and FeatureState::detail says so. For plans that are looked at: nothing is attached by a guess.
void assume_features_of_release();

/// The machine of the running kernel, as this code was built for it.
[[nodiscard]] Machine kernel_machine() noexcept;
/// KernelFacts::abilities of the running kernel, from the features of kernel functions.
[[nodiscard]] KernelAbilities kernel_abilities();
/// The same, asked no more than programs of these kinds depend on: what is not asked is false. Each question costs a
/// program loaded, some a function patched. `backend`: PlanOptions::kernel_backend.
[[nodiscard]] KernelAbilities kernel_abilities(std::span<const KernelKind> kinds, Backend backend = Backend::automatic);

/// KernelFacts::nops of the running kernel, from nop5 and nop10: where it cannot tell, the dangerous one.
[[nodiscard]] NopOptimisation nop_optimisation();

/// The running kernel, asked what plans of these points depend on; without any, of USDT probes. `backend`:
/// PlanOptions::kernel_backend.
[[nodiscard]] KernelFacts kernel_facts(const std::vector<PointPattern>& patterns = {},
                                       Backend backend = Backend::automatic);

}  // namespace v1
}  // namespace usdt
