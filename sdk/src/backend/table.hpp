// SPDX-License-Identifier: BSD-2-Clause
// Facts about each backend, in one table. How it is attached is in link/attach_table.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "sys/uapi.hpp"
#include "usdt/backend.hpp"
#include "usdt/bpf/spec.h"
#include "usdt/feature.hpp"
#include "usdt/kernel_facts.hpp"
#include "usdt/pattern.hpp"

namespace usdt::backends {

/// Something a kernel can do or not.
using Ability = bool KernelAbilities::*;

/// enum bpf_attach_type of a program at one end of calls or at both; 0 also where the kernel wants none.
struct AttachTypes {
  std::uint32_t entry = 0;
  std::uint32_t exit = 0;
  std::uint32_t both = 0;

  [[nodiscard]] constexpr std::uint32_t of(Moment moment) const noexcept {
    if (moment == Moment::entry) return entry;
    return moment == Moment::exit ? exit : both;
  }
};

/// The ends of calls that one program can run at. A backend without `both` may use two programs.
struct Moments {
  bool entry = false;
  bool exit = false;
  bool both = false;

  [[nodiscard]] constexpr bool has(Moment moment) const noexcept {
    if (moment == Moment::both) return both || (entry && exit);
    return moment == Moment::entry ? entry : exit;
  }
};

struct BackendRow {
  Backend backend = Backend::automatic;
  BackendInfo info;
  std::uint32_t program_type = 0;  ///< enum bpf_prog_type
  Moments moments;
  AttachTypes attach_types;
  // Backends of files: the kernel is asked when programs are loaded.
  std::optional<Feature> feature = {};     ///< the backend needs it
  std::optional<Feature> exact_pid = {};   ///< its absence makes the pid filter mean one thread, not the process
  std::optional<Backend> at_returns = {};  ///< the backend that goes with it, at returns of functions
  // Backends of kernel functions and tracepoints: the planner asks what the kernel can do.
  std::optional<KernelFamily> family = {};
  Ability needs = nullptr;     ///< the backend needs it; null: it is in every kernel
  std::string_view lack = {};  ///< "this kernel has no ...": what to call it then
  Ability cookies = nullptr;   ///< attach cookies need it
  Ability sessions = nullptr;  ///< one program at both ends needs it; null: as `moments` says
  usdt_source source = USDT_SOURCE_USER;
  Ability slot_helper = nullptr;   ///< USDT_SOURCE_SLOTS: without which it is USDT_SOURCE_OLD_SLOTS
  bool on_perf_event = false;      ///< the link is on a perf event
  bool of_family = false;          ///< LoadOptions::family: it is chosen for those, and cannot be asked for
  std::uint8_t tracer_frames = 0;  ///< PlannedSite::tracer_frames
};

// BackendInfo::decided_by.
inline constexpr std::array kOfFiles = {Feature::uprobe_multi, Feature::attach_cookie, Feature::uprobe_session,
                                        Feature::nop5, Feature::nop10};
inline constexpr std::array kOfKernelFunctions = {Feature::kprobe_multi, Feature::kprobe_session, Feature::tracing,
                                                  Feature::tracing_multi};
inline constexpr std::array kOfRawTracepoints = {Feature::raw_tp_cookie};
inline constexpr std::array kOfTypedTracepoints = {Feature::tp_btf_func_arg};

// Stacks (tracer_frames) are taken from the registers at a kprobe; elsewhere from within the program: that, and the
// trampoline that called it. Behind it, a raw tracepoint has the kernel's own helpers, which differ by version
// (kernel::is_tracer_frame()).
/// All of them in the order of their enumerators: of those for the same points, the cheapest first.
inline constexpr std::array kBackends = {
    BackendRow{.backend = Backend::uprobe_multi,
               .info = {"uprobe_multi", "Linux 6.6", PointKind::file, true, Misses::none, TiedTo::nothing, kOfFiles},
               .program_type = sys::kBpfProgTypeKprobe,
               .moments = {.entry = true},
               .attach_types = {.entry = sys::kBpfAttachTraceUprobeMulti},
               .feature = Feature::uprobe_multi,
               .exact_pid = Feature::uprobe_multi_pid,
               .at_returns = Backend::uprobe_return},
    BackendRow{.backend = Backend::perf_uprobe,
               .info = {"perf_uprobe", "Linux 4.17, with cookies 5.15", PointKind::file, false, Misses::none,
                        TiedTo::nothing, kOfFiles},
               .program_type = sys::kBpfProgTypeKprobe,
               .moments = {.entry = true},
               .attach_types = {},
               .at_returns = Backend::perf_uretprobe,
               .on_perf_event = true},
    BackendRow{.backend = Backend::perf_uretprobe,
               .info = {"perf_uretprobe", "Linux 4.17, with cookies 5.15", PointKind::file, false, Misses::none,
                        TiedTo::nothing, kOfFiles},
               .program_type = sys::kBpfProgTypeKprobe,
               .moments = {.exit = true},
               .attach_types = {},
               .on_perf_event = true},
    BackendRow{.backend = Backend::uprobe_return,
               .info = {"uprobe_return", "Linux 6.6", PointKind::file, true, Misses::none, TiedTo::nothing, kOfFiles},
               .program_type = sys::kBpfProgTypeKprobe,
               .moments = {.exit = true},
               .attach_types = {.exit = sys::kBpfAttachTraceUprobeMulti},
               .feature = Feature::uprobe_multi,
               .exact_pid = Feature::uprobe_multi_pid},
    BackendRow{.backend = Backend::uprobe_session,
               .info = {"uprobe_session", "Linux 6.13", PointKind::file, true, Misses::none, TiedTo::nothing, kOfFiles},
               .program_type = sys::kBpfProgTypeKprobe,
               .moments = {.both = true},
               .attach_types = {.both = sys::kBpfAttachTraceUprobeSession},
               .feature = Feature::uprobe_session,
               .exact_pid = Feature::uprobe_multi_pid},
    BackendRow{.backend = Backend::kprobe_session,
               .info = {"kprobe_session", "Linux 6.10, CONFIG_FPROBE", PointKind::kernel_function, true,
                        Misses::in_kprobe, TiedTo::nothing, kOfKernelFunctions},
               .program_type = sys::kBpfProgTypeKprobe,
               .moments = {.both = true},
               .attach_types = {.both = sys::kBpfAttachTraceKprobeSession},
               .family = KernelFamily::kprobe,
               .needs = &KernelAbilities::kprobe_session,
               .lack = "kprobe sessions (Linux 6.10)",
               .cookies = &KernelAbilities::perf_cookies,
               .sessions = &KernelAbilities::kprobe_session,
               .source = USDT_SOURCE_KERNEL},
    BackendRow{.backend = Backend::kprobe_multi,
               .info = {"kprobe_multi", "Linux 5.18, CONFIG_FPROBE", PointKind::kernel_function, true,
                        Misses::in_kprobe, TiedTo::nothing, kOfKernelFunctions},
               .program_type = sys::kBpfProgTypeKprobe,
               .moments = {.entry = true, .exit = true},
               .attach_types = {.entry = sys::kBpfAttachTraceKprobeMulti, .exit = sys::kBpfAttachTraceKprobeMulti},
               .family = KernelFamily::kprobe,
               .needs = &KernelAbilities::kprobe_multi,
               .lack = "kprobe_multi (Linux 5.18, CONFIG_FPROBE)",
               .cookies = &KernelAbilities::perf_cookies,
               .source = USDT_SOURCE_KERNEL},
    BackendRow{.backend = Backend::perf_kprobe,
               .info = {"perf_kprobe", "Linux 4.17, CONFIG_KPROBE_EVENTS", PointKind::kernel_function, false,
                        Misses::in_kprobe, TiedTo::nothing, kOfKernelFunctions},
               .program_type = sys::kBpfProgTypeKprobe,
               .moments = {.entry = true, .exit = true},
               .attach_types = {},
               .family = KernelFamily::kprobe,
               .needs = &KernelAbilities::perf_kprobe,
               .lack = "kprobes (CONFIG_KPROBE_EVENTS)",
               .cookies = &KernelAbilities::perf_cookies,
               .source = USDT_SOURCE_KERNEL,
               .on_perf_event = true},
    BackendRow{.backend = Backend::tracing_multi,
               .info = {"tracing_multi", "Linux 7.2, x86-64", PointKind::kernel_function, true, Misses::in_program,
                        TiedTo::module, kOfKernelFunctions},
               .program_type = sys::kBpfProgTypeTracing,
               .moments = {.entry = true, .exit = true, .both = true},
               .attach_types = {.entry = sys::kBpfAttachTraceFentryMulti,
                                .exit = sys::kBpfAttachTraceFexitMulti,
                                .both = sys::kBpfAttachTraceFsessionMulti},
               .family = KernelFamily::trampoline,
               .needs = &KernelAbilities::tracing_multi,
               .lack = "tracing_multi (Linux 7.2, x86-64)",
               .cookies = &KernelAbilities::tracing_cookies,
               .sessions = &KernelAbilities::tracing_multi,
               .source = USDT_SOURCE_SLOTS,
               .slot_helper = &KernelAbilities::func_arg,
               .tracer_frames = 2},
    BackendRow{.backend = Backend::tracing,
               .info = {"tracing", "Linux 5.5, arm64 6.4", PointKind::kernel_function, false, Misses::in_program,
                        TiedTo::point, kOfKernelFunctions},
               .program_type = sys::kBpfProgTypeTracing,
               .moments = {.entry = true, .exit = true, .both = true},
               .attach_types = {.entry = sys::kBpfAttachTraceFentry,
                                .exit = sys::kBpfAttachTraceFexit,
                                .both = sys::kBpfAttachTraceFsession},
               .family = KernelFamily::trampoline,
               .needs = &KernelAbilities::tracing,
               .lack = "BPF trampolines (fentry): kprobe or kfunc names do without",
               .cookies = &KernelAbilities::tracing_cookies,
               .sessions = &KernelAbilities::tracing_session,
               .source = USDT_SOURCE_SLOTS,
               .slot_helper = &KernelAbilities::func_arg,
               .tracer_frames = 2},
    BackendRow{.backend = Backend::raw_tp,
               .info = {"raw_tp", "Linux 4.17", PointKind::tracepoint, false, Misses::in_program, TiedTo::nothing,
                        kOfRawTracepoints},
               .program_type = sys::kBpfProgTypeRawTracepoint,
               .moments = {.entry = true},
               .attach_types = {},
               .family = KernelFamily::raw_tp,
               .cookies = &KernelAbilities::raw_tp_cookies,
               .source = USDT_SOURCE_RAW,
               .tracer_frames = 1},
    BackendRow{.backend = Backend::tp_btf,
               .info = {"tp_btf", "Linux 5.5, CONFIG_DEBUG_INFO_BTF", PointKind::tracepoint, false, Misses::in_program,
                        TiedTo::point, kOfTypedTracepoints},
               .program_type = sys::kBpfProgTypeTracing,
               .moments = {.entry = true},
               .attach_types = {.entry = sys::kBpfAttachTraceRawTp},
               .family = KernelFamily::tp_btf,
               .needs = &KernelAbilities::kernel_btf,
               .lack = "type information (BTF): raw_tp names do without",
               .cookies = &KernelAbilities::raw_tp_cookies,
               .source = USDT_SOURCE_SLOTS,
               .slot_helper = &KernelAbilities::tp_btf_func_arg,
               .tracer_frames = 1},
    BackendRow{.backend = Backend::uprobe_family,
               .info = {"uprobe_family", "Linux 6.12, tracefs", PointKind::file, false, Misses::none, TiedTo::nothing,
                        kOfFiles},
               .program_type = sys::kBpfProgTypeKprobe,
               .moments = {.entry = true},
               .attach_types = {},
               .at_returns = Backend::uprobe_family_return,
               .on_perf_event = true,
               .of_family = true},
    BackendRow{.backend = Backend::uprobe_family_return,
               .info = {"uprobe_family_return", "Linux 6.12, tracefs", PointKind::file, false, Misses::none,
                        TiedTo::nothing, kOfFiles},
               .program_type = sys::kBpfProgTypeKprobe,
               .moments = {.exit = true},
               .attach_types = {},
               .on_perf_event = true,
               .of_family = true},
};

/// A family has an event for each site and task, which fork(2) makes: some microseconds each.
inline constexpr std::size_t kMostFamilySites = 64;

/// A row's place is its enumerator, less `automatic`.
constexpr bool in_order() noexcept {
  for (std::size_t i = 0; i < kBackends.size(); ++i) {
    if (static_cast<std::size_t>(kBackends[i].backend) != i + 1) return false;
  }
  return true;
}
static_assert(in_order(), "rows are in the order of enum Backend");

/// `backend` must not be automatic, which has no row.
[[nodiscard]] constexpr const BackendRow& row_of(Backend backend) noexcept {
  return kBackends[static_cast<std::size_t>(backend) - 1];
}

/// The row of what attaches programs of `moment`, where `backend` is what their group is attached by, or what serves
/// USDT sites: at returns another one may go with it. Precondition: not automatic.
[[nodiscard]] constexpr const BackendRow& row_of(Backend backend, Moment moment) noexcept {
  const BackendRow& row = row_of(backend);
  return moment == Moment::exit && row.at_returns ? row_of(*row.at_returns) : row;
}

}  // namespace usdt::backends
