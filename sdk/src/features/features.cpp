// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/features.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "arch/arch.hpp"
#include "features/feature_table.hpp"
#include "features/trivial_program.hpp"
#include "sys/uapi.hpp"

namespace usdt {
inline namespace v1 {
namespace {

using features::FeatureRow;

/// In the order of their enumerators. Commits are of the kernel's mainline.
constexpr std::array kFeatures = {
    FeatureRow{Feature::uprobe_multi,
               {"uprobe_multi", "6.6", "89ae89f53d20"},
               [](const FeatureRow& row) { return probe_uprobe_link(row, sys::kBpfAttachTraceUprobeMulti); }},
    FeatureRow{
        Feature::uprobe_multi_pid, {"uprobe_multi_pid", "6.10", "46ba0e49b642"}, features::probe_uprobe_multi_pid},
    FeatureRow{Feature::attach_cookie, {"attach_cookie", "5.15", "7adfc6c9b315"}, features::probe_attach_cookie},
    FeatureRow{Feature::ref_ctr, {"ref_ctr", "4.20", "1cc33161a83d"}, features::probe_ref_ctr},
    FeatureRow{Feature::nop5,
               {"nop5", "6.18 until reworked", {}},
               [](const FeatureRow& row) { return probe_nop(row, ENXIO, "ENXIO"); }},
    FeatureRow{
        Feature::nop10, {"nop10", "7.2", {}}, [](const FeatureRow& row) { return probe_nop(row, EPROTO, "EPROTO"); }},
    FeatureRow{Feature::kernel_btf,
               {"kernel_btf", "5.4 with CONFIG_DEBUG_INFO_BTF", "341dfcf8d78e"},
               features::probe_kernel_btf},
    FeatureRow{Feature::kprobe_multi,
               {"kprobe_multi", "5.18 with CONFIG_FPROBE", "0dcac2725406"},
               [](const FeatureRow& row) { return probe_kprobe_link(row, sys::kBpfAttachTraceKprobeMulti); }},
    FeatureRow{Feature::kprobe_session,
               {"kprobe_session", "6.10 with CONFIG_FPROBE", "535a3692ba72"},
               [](const FeatureRow& row) { return probe_kprobe_link(row, sys::kBpfAttachTraceKprobeSession); }},
    FeatureRow{Feature::tracing,
               {"tracing", "5.5 on x86-64, 6.4 on arm64", {}},
               [](const FeatureRow& row) { return probe_trampoline(row, sys::kBpfAttachTraceFentry); }},
    FeatureRow{Feature::tracing_session,
               {"tracing_session", "7.0", {}},
               [](const FeatureRow& row) { return probe_trampoline(row, sys::kBpfAttachTraceFsession); }},
    FeatureRow{Feature::tracing_multi, {"tracing_multi", "7.2 on x86-64", {}}, features::probe_tracing_multi},
    FeatureRow{Feature::func_arg,
               {"func_arg", "5.17", "f92c1e183604"},
               [](const FeatureRow& row) { return probe_fentry_helper(row, features::kInsnGetFuncArgCnt); }},
    FeatureRow{Feature::tp_btf_func_arg, {"tp_btf_func_arg", "7.2", {}}, features::probe_tp_btf_func_arg},
    FeatureRow{Feature::tracing_cookie,
               {"tracing_cookie", "5.19", "2fcc82411e74"},
               [](const FeatureRow& row) { return probe_fentry_helper(row, features::kInsnGetAttachCookie); }},
    FeatureRow{Feature::raw_tp_cookie, {"raw_tp_cookie", "6.10", "68ca5d4eebb8"}, features::probe_raw_tp_cookie},
    FeatureRow{Feature::sleepable_uprobe, {"sleepable_uprobe", "6.0", {}}, features::probe_sleepable_uprobe},
    FeatureRow{Feature::growing_hash, {"growing_hash", "6.1", "02cc5aa29e8c"}, features::probe_growing_hash},
    FeatureRow{Feature::uprobe_session,
               {"uprobe_session", "6.13", "d920179b3d48"},
               [](const FeatureRow& row) { return probe_uprobe_link(row, sys::kBpfAttachTraceUprobeSession); }},
};

constexpr bool in_order() noexcept {
  for (std::size_t i = 0; i < kFeatures.size(); ++i) {
    if (static_cast<std::size_t>(kFeatures[i].feature) != i) return false;
  }
  return true;
}
static_assert(in_order(), "rows are in the order of enum Feature");

constexpr const FeatureRow& row_of(Feature feature) noexcept { return kFeatures[static_cast<std::size_t>(feature)]; }

std::recursive_mutex kept_mutex;
std::array<std::optional<FeatureState>, kFeatures.size()> kept;
thread_local const FeatureChoice* chosen = nullptr;  ///< of the latest scope; null: there is none

using Version = std::pair<unsigned, unsigned>;

/// "6.18" at the beginning of a text, which loses it.
std::optional<Version> read_version(std::string_view& text) noexcept {
  Version version{};
  for (unsigned* part : {&version.first, &version.second}) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *part);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (part == &version.second) break;
    if (!text.starts_with('.')) return std::nullopt;
    text.remove_prefix(1);
  }
  return version;
}

/// Returns the version for `machine` from a text such as "5.5 on x86-64, 6.4 on arm64"; nothing: never.
std::optional<Version> since_when(std::string_view since, Machine machine) noexcept {
  const std::string_view name = arch::for_machine(machine).kernel.name;
  while (const auto version = read_version(since)) {
    const std::string_view about = since.substr(0, since.find(", "));
    const bool of_one = about.starts_with(" on ");
    if (!of_one || about.substr(4).starts_with(name)) return version;
    since.remove_prefix(std::min(about.size() + 2, since.size()));
  }
  return std::nullopt;
}

/// `unknown`, answered by the release of the running kernel.
FeatureState assumed(FeatureState unknown) {
  utsname name{};
  if (::uname(&name) != 0) return unknown;
  const Answer answer = feature_of_release(unknown.feature, name.release, kernel_machine());
  if (answer == Answer::unknown) return unknown;
  return {unknown.feature, answer, fmt::format("assumed of Linux {}: {}", name.release, unknown.detail)};
}

}  // namespace

const FeatureInfo& feature_info(Feature feature) noexcept { return row_of(feature).info; }

std::string_view to_string(Feature feature) noexcept { return feature_info(feature).name; }

std::string_view to_string(Answer answer) noexcept {
  return answer == Answer::yes ? "yes" : answer == Answer::no ? "no" : "unknown";
}

std::vector<Feature> all_features() {
  std::vector<Feature> all;
  for (const FeatureRow& row : kFeatures) all.push_back(row.feature);
  return all;
}

Result<Feature> feature_by_name(std::string_view name) {
  std::vector<std::string_view> names;
  for (const FeatureRow& row : kFeatures) {
    if (row.info.name == name) return row.feature;
    names.push_back(row.info.name);
  }
  return fail(ErrorKind::not_found, fmt::format("no feature '{}': there are {}", name, fmt::join(names, ", ")));
}

FeatureScope::FeatureScope(const FeatureChoice& choice) noexcept : outer_(std::exchange(chosen, &choice)) {}
FeatureScope::~FeatureScope() { chosen = outer_; }

const FeatureChoice& FeatureScope::current() noexcept {
  static const FeatureChoice none;
  return chosen == nullptr ? none : *chosen;
}

FeatureState probe_feature(Feature feature) {
  const FeatureChoice& choice = FeatureScope::current();
  if (std::ranges::find(choice.disabled, feature) != choice.disabled.end())
    return {feature, Answer::no, "disabled by option"};
  if (const auto known = std::ranges::find(choice.known, feature, &FeatureState::feature);
      known != choice.known.end() && known->answer != Answer::unknown)
    return *known;
  const std::lock_guard lock(kept_mutex);
  auto& slot = kept[static_cast<std::size_t>(feature)];
  if (slot) return *slot;
  const FeatureRow& row = row_of(feature);
  FeatureState answer = row.probe(row);
  if (answer.answer != Answer::unknown) slot = answer;
  return answer.answer == Answer::unknown && choice.assumes_release ? assumed(std::move(answer)) : answer;
}

std::vector<FeatureState> probe_features() {
  std::vector<FeatureState> all;
  for (const FeatureRow& row : kFeatures) all.push_back(probe_feature(row.feature));
  return all;
}

Answer feature_of_release(Feature feature, std::string_view release, Machine machine) noexcept {
  const auto running = read_version(release);
  if (!running) return Answer::unknown;
  const auto since = since_when(row_of(feature).info.since, machine);
  return since && *running >= *since ? Answer::yes : Answer::no;
}

NopOptimisation nop_optimisation() {
  if (probe_feature(Feature::nop10).answer == Answer::yes) return NopOptimisation::nop10;
  // Not knowing counts as the dangerous kind: a bare nop5 is then left alone.
  return probe_feature(Feature::nop5).answer == Answer::no ? NopOptimisation::none : NopOptimisation::nop5;
}

}  // namespace v1
}  // namespace usdt
