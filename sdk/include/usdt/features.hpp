// SPDX-License-Identifier: BSD-2-Clause
// Asks the running kernel what it can do. kernel_facts() collects what plan_attach() needs, probe_features() answers
// for all features, feature_info() tells which kernel brought each.
//     usdt::KernelFacts kernel = usdt::kernel_facts(patterns);
//     auto plan = usdt::plan_attach(*selection, kernel);
// Threads: any. Certain answers are kept for the whole process. A FeatureScope changes what one thread is answered, and
// SessionOptions::features what one session goes by.
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

/// The answer to a question about the kernel. `unknown`: the kernel did not tell, for want of privilege say.
enum class Answer : std::uint8_t { yes, no, unknown };

/// Reports one probed feature. `detail` says how it was found out, or why it could not be ("EPERM from bpf(2)").
struct FeatureState {
  Feature feature;
  Answer answer = Answer::unknown;
  std::string detail;
};

/// Describes one feature, whatever the running kernel.
struct FeatureInfo {
  std::string_view name;    ///< "uprobe_multi"
  std::string_view since;   ///< the first kernel, and what else it needs: "5.18 with CONFIG_FPROBE"
  std::string_view commit;  ///< of the kernel's mainline, 12 digits; empty: not one alone
};
/// Returns the description of a feature. It lives as long as the program.
[[nodiscard]] const FeatureInfo& feature_info(Feature feature) noexcept;
/// Returns FeatureInfo::name.
[[nodiscard]] std::string_view to_string(Feature feature) noexcept;
/// Returns "yes", "no" or "unknown".
[[nodiscard]] std::string_view to_string(Answer answer) noexcept;
/// Returns the feature called `name`: "uprobe_multi" is Feature::uprobe_multi. Errors: not_found, which lists all
/// names.
[[nodiscard]] Result<Feature> feature_by_name(std::string_view name);

/// Returns all features that there are, whatever the running kernel.
[[nodiscard]] std::vector<Feature> all_features();

/// Asks the kernel for one feature. Yes and no are kept for the process; `unknown` is asked again at the next call.
[[nodiscard]] FeatureState probe_feature(Feature feature);
/// Asks the kernel for all features; the answers are in declaration order.
[[nodiscard]] std::vector<FeatureState> probe_features();
/// A choice to take some answers of the kernel for granted. A plain value.
struct FeatureChoice {
  /// Features that are answered "no", so that their fallbacks can be tried (as bpftrace's BPFnofeature does).
  std::vector<Feature> disabled = {};
  /// Answers by the kernel's release what the kernel does not tell this process (for want of privilege, say).
  /// FeatureState::detail says so. Meant for plans that people look at: attach nothing by a guess.
  bool assumes_release = false;
  /// What somebody found out who may ask the kernel more than this process may (Broker::features()).
  std::vector<FeatureState> known = {};
};

/// Makes probe_feature() and all that is built on it answer by a choice, on the thread that made it, as long as it
/// lives. The latest one counts.
class FeatureScope {
 public:
  /// `choice` lives as long.
  explicit FeatureScope(const FeatureChoice& choice) noexcept;
  ~FeatureScope();
  FeatureScope(const FeatureScope&) = delete;
  FeatureScope& operator=(const FeatureScope&) = delete;

  /// Returns the choice by which this thread is answered, which threads that it starts may be given.
  [[nodiscard]] static const FeatureChoice& current() noexcept;

 private:
  const FeatureChoice* outer_;
};

/// Returns whether a kernel of `release` ("6.18.44-amd64") has `feature` by FeatureInfo::since, with the options that
/// distributions set. `unknown`: the text is no release. Reads nothing.
[[nodiscard]] Answer feature_of_release(Feature feature, std::string_view release, Machine machine) noexcept;

/// Returns the machine of the running kernel, as this code was built for it.
[[nodiscard]] Machine kernel_machine() noexcept;
/// Returns KernelFacts::abilities of the running kernel, from the features of kernel functions.
[[nodiscard]] KernelAbilities kernel_abilities();
/// Returns the abilities that programs of these kinds depend on, and asks for no others: what is not asked is false.
/// Each question costs a program loaded, some a function patched. `backend`: PlanOptions::kernel_backend.
[[nodiscard]] KernelAbilities kernel_abilities(std::span<const KernelKind> kinds, Backend backend = Backend::automatic);

/// Returns KernelFacts::nops of the running kernel, from the features nop5 and nop10; the dangerous one where the
/// kernel does not tell.
[[nodiscard]] NopOptimisation nop_optimisation();

/// Asks the running kernel for what plans of these points depend on; without patterns, of USDT probes. `backend`:
/// PlanOptions::kernel_backend.
[[nodiscard]] KernelFacts kernel_facts(const std::vector<PointPattern>& patterns = {},
                                       Backend backend = Backend::automatic);

}  // namespace v1
}  // namespace usdt
