// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/features.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>

#include "features/kernel_features.hpp"
#include "features/trivial_program.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"
#include "sys/unique_fd.hpp"

namespace usdt {
namespace {

using features::insn_get_attach_cookie;
using features::insn_move_r0;
using features::load_trivial_program;

FeatureState state(Feature feature, Answer answer, std::string detail) { return {feature, answer, std::move(detail)}; }

FeatureState unsure(Feature feature, std::string_view call, int error) {
  return state(feature, Answer::unknown, fmt::format("{} from {}", std::strerror(-error), call));
}

/// BPF_LINK_CREATE of one uprobe on "/" with `pid`: which errno comes back tells how far the kernel understood it.
int provoke_uprobe_multi(std::uint32_t pid) {
  const int prog = load_trivial_program(insn_move_r0, {.attach_type = sys::bpf_attach_trace_uprobe_multi});
  if (prog < 0) return prog;
  const sys::UniqueFd owner(prog);
  const std::uint64_t offset = 0;
  sys::LinkCreateUprobeMulti attr;
  attr.prog_fd = static_cast<std::uint32_t>(prog);
  attr.path = reinterpret_cast<std::uintptr_t>("/");
  attr.offsets = reinterpret_cast<std::uintptr_t>(&offset);
  attr.cnt = 1;
  attr.pid = pid;
  const int link = sys::syscalls().bpf(sys::bpf_link_create_cmd, &attr, sizeof(attr));
  if (link >= 0) ::close(link);
  return link;
}

FeatureState probe_uprobe_multi() {
  // A directory is no target: EBADF from kernels that know the attach type, EINVAL from those that do not.
  const int error = provoke_uprobe_multi(0);
  if (error == -EBADF) return state(Feature::uprobe_multi, Answer::yes, "EBADF for a link on a directory");
  if (error == -EINVAL)
    return state(Feature::uprobe_multi, Answer::no, "EINVAL for a link on a directory; needs >= 6.6");
  return unsure(Feature::uprobe_multi, "BPF_LINK_CREATE", error);
}

FeatureState probe_uprobe_multi_pid() {
  // Since the fix a negative pid is refused before the path is looked at.
  const int error = provoke_uprobe_multi(static_cast<std::uint32_t>(-1));
  if (error == -EINVAL && probe_feature(Feature::uprobe_multi).answer == Answer::yes)
    return state(Feature::uprobe_multi_pid, Answer::yes, "EINVAL for pid -1");
  if (error == -EBADF || error == -EINVAL || error == -ESRCH)
    return state(Feature::uprobe_multi_pid, Answer::no, "pid -1 is looked up; fixed in 6.10");
  return unsure(Feature::uprobe_multi_pid, "BPF_LINK_CREATE", error);
}

FeatureState probe_attach_cookie() {
  const sys::UniqueFd prog(load_trivial_program(insn_get_attach_cookie));
  if (prog) return state(Feature::attach_cookie, Answer::yes, "a program calling bpf_get_attach_cookie loads");
  const int plain = load_trivial_program(insn_move_r0);
  if (plain < 0) return unsure(Feature::attach_cookie, "BPF_PROG_LOAD", plain);
  ::close(plain);
  return state(Feature::attach_cookie, Answer::no, "bpf_get_attach_cookie is refused; needs >= 5.15");
}

FeatureState probe_sleepable_uprobe() {
  const int prog = load_trivial_program(insn_move_r0, {.flags = sys::bpf_f_sleepable});
  if (prog >= 0) ::close(prog);
  if (prog >= 0) return state(Feature::sleepable_uprobe, Answer::yes, "a sleepable program loads");
  if (prog == -EINVAL)
    return state(Feature::sleepable_uprobe, Answer::no, "EINVAL for a sleepable program; needs >= 6.0");
  return unsure(Feature::sleepable_uprobe, "BPF_PROG_LOAD", prog);
}

FeatureState probe_ref_ctr() {
  struct stat st {};
  if (::stat("/sys/bus/event_source/devices/uprobe/format/ref_ctr_offset", &st) == 0)
    return state(Feature::ref_ctr, Answer::yes, "the uprobe event source has ref_ctr_offset");
  if (::stat("/sys/bus/event_source/devices/uprobe", &st) == 0)
    return state(Feature::ref_ctr, Answer::no, "the uprobe event source has no ref_ctr_offset; needs >= 4.20");
  return state(Feature::ref_ctr, Answer::unknown,
               "/sys/bus/event_source/devices/uprobe is not there: is /sys mounted?");
}

/// uprobe(2) from outside a trampoline: ENXIO in the nop5 era, EPROTO since nop10 (7.2), ENOSYS before both.
FeatureState probe_nop(Feature feature, int telling_errno, const char* name) {
  const int error = sys::syscalls().uprobe();
  if (error == -telling_errno) return state(feature, Answer::yes, fmt::format("{} from uprobe(2)", name));
  if (error == -ENOSYS) return state(feature, Answer::no, "no uprobe(2)");
  if (error == -ENXIO || error == -EPROTO) return state(feature, Answer::no, "uprobe(2) of the other kind");
  return unsure(feature, "uprobe(2)", error);
}

FeatureState probe_kernel_btf() {
  static constexpr const char* path = "/sys/kernel/btf/vmlinux";
  if (::access(path, R_OK) == 0) return state(Feature::kernel_btf, Answer::yes, path);
  if (errno != ENOENT) return unsure(Feature::kernel_btf, path, -errno);
  struct stat st {};
  if (::stat("/sys/kernel", &st) != 0)
    return state(Feature::kernel_btf, Answer::unknown, "/sys/kernel is not there: is /sys mounted?");
  return state(Feature::kernel_btf, Answer::no, fmt::format("no {}; needs CONFIG_DEBUG_INFO_BTF", path));
}

FeatureState ask(Feature feature) {
  switch (feature) {
    case Feature::uprobe_multi:
      return probe_uprobe_multi();
    case Feature::uprobe_multi_pid:
      return probe_uprobe_multi_pid();
    case Feature::attach_cookie:
      return probe_attach_cookie();
    case Feature::sleepable_uprobe:
      return probe_sleepable_uprobe();
    case Feature::ref_ctr:
      return probe_ref_ctr();
    case Feature::nop5:
      return probe_nop(feature, ENXIO, "ENXIO");
    case Feature::nop10:
      return probe_nop(feature, EPROTO, "EPROTO");
    case Feature::kernel_btf:
      return probe_kernel_btf();
    default:
      return features::probe_kernel_function_feature(feature);
  }
}

constexpr std::array<std::string_view, 17> names{
    "uprobe_multi",    "uprobe_multi_pid", "attach_cookie", "ref_ctr",         "nop5",
    "nop10",           "kernel_btf",       "kprobe_multi",  "kprobe_session",  "tracing",
    "tracing_session", "tracing_multi",    "func_arg",      "tp_btf_func_arg", "tracing_cookie",
    "raw_tp_cookie",   "sleepable_uprobe"};

std::recursive_mutex kept_mutex;
std::array<std::optional<FeatureState>, names.size()> kept;

}  // namespace

std::string_view to_string(Feature feature) noexcept { return names[static_cast<std::size_t>(feature)]; }

std::string_view to_string(Answer answer) noexcept {
  return answer == Answer::yes ? "yes" : answer == Answer::no ? "no" : "unknown";
}

Result<Feature> feature_by_name(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<Feature>(i);
  return fail(ErrorKind::not_found, fmt::format("no feature '{}': there are {}", name, fmt::join(names, ", ")));
}

FeatureState probe_feature(Feature feature) {
  const std::lock_guard lock(kept_mutex);
  auto& slot = kept[static_cast<std::size_t>(feature)];
  if (slot) return *slot;
  FeatureState answer = ask(feature);
  if (answer.answer != Answer::unknown) slot = answer;
  return answer;
}

std::vector<FeatureState> probe_features() {
  std::vector<FeatureState> all;
  for (std::size_t i = 0; i < names.size(); ++i) all.push_back(probe_feature(static_cast<Feature>(i)));
  return all;
}

void disable_feature(Feature feature) {
  const std::lock_guard lock(kept_mutex);
  kept[static_cast<std::size_t>(feature)] = FeatureState{feature, Answer::no, "disabled by option"};
}

NopOptimisation nop_optimisation() {
  if (probe_feature(Feature::nop10).answer == Answer::yes) return NopOptimisation::nop10;
  // Not knowing counts as the dangerous kind: a bare nop5 is then left alone.
  return probe_feature(Feature::nop5).answer == Answer::no ? NopOptimisation::none : NopOptimisation::nop5;
}

}  // namespace usdt
