// SPDX-License-Identifier: BSD-2-Clause
#include "features/kernel_features.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "backend/table.hpp"
#include "btf/types.hpp"
#include "features/feature_table.hpp"
#include "features/trivial_program.hpp"
#include "sys/probe_source.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"
#include "sys/unique_fd.hpp"

namespace usdt::features {
namespace {

constexpr std::string_view kTestTracepoint = "sys_enter";

FeatureState yes(const FeatureRow& row, std::string detail) { return {row.feature, Answer::yes, std::move(detail)}; }
FeatureState no(const FeatureRow& row, std::string detail) { return {row.feature, Answer::no, std::move(detail)}; }
FeatureState unsure(const FeatureRow& row, std::string_view call, int error) {
  return {row.feature, Answer::unknown, fmt::format("{} from {}", std::strerror(error), call)};
}

std::string errno_name(int error) {
  if (error == sys::kEnotsupp) return "ENOTSUPP";
  const char* name = ::strerrorname_np(error);
  return name ? name : fmt::format("errno {}", error);
}

/// "no" with the errno, unless that speaks of privilege.
FeatureState refused(const FeatureRow& row, std::string_view what, int error) {
  if (error == EPERM || error == EACCES) {
    // EACCES is the verifier's word for a helper or type it does not know, too: only a program that must load tells.
    const int plain = load_trivial_program(kInsnMoveR0, {});
    if (plain < 0) return unsure(row, "BPF_PROG_LOAD", -plain);
    const sys::UniqueFd owner(plain);
  }
  return no(row, fmt::format("{} for {}; needs >= {}", errno_name(error), what, row.info.since));
}

}  // namespace

/// A link of one function whose name cannot be read: EFAULT from kernels that try to. A name that no function has would
/// do, too, and have the kernel go through all its symbols.
FeatureState probe_kprobe_link(const FeatureRow& row, std::uint32_t attach_type) {
  const int prog = load_trivial_program(kInsnMoveR0, {.attach_type = attach_type});
  if (prog < 0) return refused(row, "loading its program", -prog);
  const sys::UniqueFd owner(prog);
  const unsigned long names[] = {0};
  sys::LinkCreateKprobeMulti attr;
  attr.prog_fd = static_cast<std::uint32_t>(prog);
  attr.attach_type = attach_type;
  attr.cnt = 1;
  attr.syms = reinterpret_cast<std::uintptr_t>(names);
  const int link = sys::syscalls().bpf(sys::kBpfLinkCreateCmd, &attr, sizeof(attr));
  const sys::UniqueFd link_owner(link);
  if (link == -EFAULT) return yes(row, "a link reads the names of its functions");
  return refused(row, "a link", -link);
}

namespace {

/// Number of a BTF_KIND_FUNC, or of a tracepoint's typedef; 0: none.
std::uint32_t type_of(std::string_view name, bool tracepoint) {
  const auto types = btf::Types::load();
  if (!types) return 0;
  return tracepoint ? (*types)->tracepoint_id(name) : (*types)->function_id(name);
}

std::uint32_t test_function() {
  static const std::uint32_t id = type_of(kTestFunction, false);
  return id;
}

}  // namespace

/// A trampoline program that calls a helper; arm64 kernels before 6.4 load it, and refuse the link.
FeatureState probe_trampoline(const FeatureRow& row, std::uint32_t attach_type) {
  const std::uint32_t id = test_function();
  if (id == 0) return no(row, fmt::format("no type information (BTF) of {}", kTestFunction));
  const int prog =
      load_trivial_program(kInsnMoveR0, {.type = sys::kBpfProgTypeTracing, .attach_type = attach_type, .btf_id = id});
  if (prog < 0) return refused(row, "loading its program", -prog);
  const sys::UniqueFd owner(prog);
  sys::RawTracepointOpen attr;  // understood since 5.5, where BPF_LINK_CREATE is not
  attr.prog_fd = static_cast<std::uint32_t>(prog);
  const int link = sys::syscalls().bpf(sys::kBpfRawTracepointOpenCmd, &attr, 16);
  const sys::UniqueFd link_owner(link);
  if (link >= 0) return yes(row, fmt::format("{} is attached to", kTestFunction));
  return refused(row, "a link", -link);
}

namespace {

FeatureState probe_helper(const FeatureRow& row, std::uint64_t call, TrivialProgram as) {
  const bool tracing = as.type == sys::kBpfProgTypeTracing;
  if (tracing && as.btf_id == 0) return no(row, "no type information (BTF)");
  const int plain = load_trivial_program(kInsnMoveR0, as);
  if (plain < 0) return refused(row, "a program of that kind", -plain);
  const sys::UniqueFd plain_owner(plain);
  const int prog = load_trivial_program(call, as);
  if (prog < 0) return refused(row, "a program that calls the helper", -prog);
  const sys::UniqueFd owner(prog);
  return yes(row, "a program that calls the helper loads");
}

}  // namespace

/// A link of one function whose id cannot be read, as in probe_kprobe_link(); arm64 kernels refuse it before.
FeatureState probe_tracing_multi(const FeatureRow& row) {
  const int prog = load_trivial_program(
      kInsnMoveR0, {.type = sys::kBpfProgTypeTracing, .attach_type = sys::kBpfAttachTraceFentryMulti});
  if (prog < 0) return refused(row, "loading its program", -prog);
  const sys::UniqueFd owner(prog);
  sys::LinkCreateTracingMulti attr;
  attr.prog_fd = static_cast<std::uint32_t>(prog);
  attr.ids = sizeof(std::uint32_t);  // below what any program has mapped
  attr.cnt = 1;
  const int link = sys::syscalls().bpf(sys::kBpfLinkCreateCmd, &attr, sizeof(attr));
  const sys::UniqueFd link_owner(link);
  if (link == -EFAULT) return yes(row, "a link reads the ids of its functions");
  return refused(row, "a link", -link);
}

FeatureState probe_fentry_helper(const FeatureRow& row, std::uint64_t call) {
  return probe_helper(
      row, call,
      {.type = sys::kBpfProgTypeTracing, .attach_type = sys::kBpfAttachTraceFentry, .btf_id = test_function()});
}

FeatureState probe_tp_btf_func_arg(const FeatureRow& row) {
  return probe_helper(row, kInsnGetFuncArgCnt,
                      {.type = sys::kBpfProgTypeTracing,
                       .attach_type = sys::kBpfAttachTraceRawTp,
                       .btf_id = type_of(kTestTracepoint, true)});
}

FeatureState probe_raw_tp_cookie(const FeatureRow& row) {
  return probe_helper(row, kInsnGetAttachCookie, {.type = sys::kBpfProgTypeRawTracepoint});
}

}  // namespace usdt::features

namespace usdt {
inline namespace v1 {

Machine kernel_machine() noexcept { return host_machine(); }

namespace {

bool has(Feature feature) { return probe_feature(feature).answer == Answer::yes; }

/// Whether the kernel has no perf kprobes; false, too, if /sys is not mounted: then nobody knows.
bool lacks_perf_kprobes() {
  return ::access("/sys/bus/event_source/devices", X_OK) == 0 && !sys::probe_source("kprobe");
}

void ask_kprobes(KernelAbilities& abilities, bool calls) {
  abilities.perf_kprobe = !lacks_perf_kprobes();
  abilities.perf_cookies = has(Feature::attach_cookie);
  abilities.kprobe_multi = has(Feature::kprobe_multi);
  if (calls) abilities.kprobe_session = has(Feature::kprobe_session);
}

void ask_trampolines(KernelAbilities& abilities) {
  // The newest of them has the others in its kernel; attaching to find out costs tens of milliseconds.
  abilities.tracing_multi = has(Feature::tracing_multi);
  abilities.tracing = abilities.tracing_multi || has(Feature::tracing);
  abilities.tracing_session = abilities.tracing_multi || (abilities.tracing && has(Feature::tracing_session));
  abilities.func_arg = abilities.tracing_multi || has(Feature::func_arg);
  abilities.tracing_cookies = abilities.tracing_multi || has(Feature::tracing_cookie);
}

}  // namespace

KernelAbilities kernel_abilities(std::span<const KernelKind> kinds, Backend backend) {
  const auto wants = [&](auto&&... families) {
    return std::ranges::any_of(kinds, [&](KernelKind kind) { return ((kind.family == families) || ...); });
  };
  const bool calls = std::ranges::any_of(kinds, [](KernelKind kind) { return kind.moment == Moment::both; });
  KernelAbilities abilities;
  abilities.machine = kernel_machine();
  abilities.kernel_btf = has(Feature::kernel_btf);
  if (wants(KernelFamily::any, KernelFamily::kprobe)) ask_kprobes(abilities, calls);
  if (wants(KernelFamily::raw_tp, KernelFamily::tp_btf)) abilities.raw_tp_cookies = has(Feature::raw_tp_cookie);
  if (kinds.empty() || !abilities.kernel_btf) return abilities;  // who traces files alone does without the types
  const auto types = btf::Types::load();                         // read once for all that follows
  // Any mechanism will do: trampolines are of use where kprobe_multi is not to be had, or they are named.
  const bool named = backend != Backend::automatic && backends::row_of(backend).family == KernelFamily::trampoline;
  if (wants(KernelFamily::trampoline) || (wants(KernelFamily::any) && (named || !abilities.kprobe_multi)))
    ask_trampolines(abilities);
  if (wants(KernelFamily::tp_btf)) abilities.tp_btf_func_arg = has(Feature::tp_btf_func_arg);
  return abilities;
}

KernelAbilities kernel_abilities() {
  static constexpr std::array all = {
      KernelKind{KernelFamily::kprobe, Moment::both}, KernelKind{KernelFamily::trampoline, Moment::both},
      KernelKind{KernelFamily::raw_tp, Moment::entry}, KernelKind{KernelFamily::tp_btf, Moment::entry}};
  return kernel_abilities(all);
}

namespace {

void ask_functions_of_files(const std::vector<PointPattern>& patterns, KernelAbilities& abilities) {
  for (const PointPattern& pattern : patterns) {
    const auto* function = std::get_if<FunctionPattern>(&pattern);
    if (!function || function->moment == Moment::entry) continue;
    abilities.perf_cookies = abilities.perf_cookies || has(Feature::attach_cookie);
    if (function->moment == Moment::both) abilities.uprobe_session = has(Feature::uprobe_session);
  }
}

}  // namespace

KernelFacts kernel_facts(const std::vector<PointPattern>& patterns, Backend backend) {
  std::vector<KernelKind> kinds;
  for (const PointPattern& pattern : patterns) {
    if (const auto* kernel = std::get_if<KernelPattern>(&pattern)) kinds.push_back(kernel->kind);
  }
  KernelFacts facts{.nops = nop_optimisation(), .abilities = kernel_abilities(kinds, backend)};
  ask_functions_of_files(patterns, facts.abilities);
  return facts;
}

}  // namespace v1
}  // namespace usdt
