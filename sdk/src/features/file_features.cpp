// SPDX-License-Identifier: BSD-2-Clause
// Probes the kernel's features at sites of files by trying each.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "features/feature_table.hpp"
#include "features/trivial_program.hpp"
#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"
#include "sys/unique_fd.hpp"

namespace usdt::features {
namespace {

FeatureState state(const FeatureRow& row, Answer answer, std::string detail) {
  return {row.feature, answer, std::move(detail)};
}
FeatureState needs(const FeatureRow& row, std::string_view seen) {
  return state(row, Answer::no, fmt::format("{}; needs >= {}", seen, row.info.since));
}
FeatureState unsure(const FeatureRow& row, std::string_view call, int error) {
  return state(row, Answer::unknown, fmt::format("{} from {}", std::strerror(-error), call));
}

/// BPF_LINK_CREATE of one uprobe on "/" with `pid`: which errno comes back tells how far the kernel understood it.
int provoke_uprobe_link(std::uint32_t attach_type, std::uint32_t pid) {
  const int prog = load_trivial_program(kInsnMoveR0, {.attach_type = attach_type});
  if (prog < 0) return prog;
  const sys::UniqueFd owner(prog);
  const std::uint64_t offset = 0;
  sys::LinkCreateUprobeMulti attr;
  attr.prog_fd = static_cast<std::uint32_t>(prog);
  attr.attach_type = attach_type;
  attr.path = reinterpret_cast<std::uintptr_t>("/");
  attr.offsets = reinterpret_cast<std::uintptr_t>(&offset);
  attr.cnt = 1;
  attr.pid = pid;
  const int link = sys::syscalls().bpf(sys::kBpfLinkCreateCmd, &attr, sizeof(attr));
  if (link >= 0) ::close(link);
  return link;
}

}  // namespace

FeatureState probe_uprobe_link(const FeatureRow& row, std::uint32_t attach_type) {
  // A directory is no target: EBADF from kernels that know the attach type, EINVAL from those that do not.
  const int error = provoke_uprobe_link(attach_type, 0);
  if (error == -EBADF) return state(row, Answer::yes, "EBADF for a link on a directory");
  if (error == -EINVAL) return needs(row, "EINVAL for a link on a directory");
  return unsure(row, "BPF_LINK_CREATE", error);
}

FeatureState probe_uprobe_multi_pid(const FeatureRow& row) {
  // Since the fix a negative pid is refused before the path is looked at.
  const int error = provoke_uprobe_link(sys::kBpfAttachTraceUprobeMulti, static_cast<std::uint32_t>(-1));
  if (error == -EINVAL && probe_feature(Feature::uprobe_multi).answer == Answer::yes)
    return state(row, Answer::yes, "EINVAL for pid -1");
  if (error == -EBADF || error == -EINVAL || error == -ESRCH)
    return state(row, Answer::no, fmt::format("pid -1 is looked up; fixed in {}", row.info.since));
  return unsure(row, "BPF_LINK_CREATE", error);
}

FeatureState probe_attach_cookie(const FeatureRow& row) {
  const sys::UniqueFd prog(load_trivial_program(kInsnGetAttachCookie));
  if (prog) return state(row, Answer::yes, "a program calling bpf_get_attach_cookie loads");
  const int plain = load_trivial_program(kInsnMoveR0);
  if (plain < 0) return unsure(row, "BPF_PROG_LOAD", plain);
  ::close(plain);
  return needs(row, "bpf_get_attach_cookie is refused");
}

FeatureState probe_sleepable_uprobe(const FeatureRow& row) {
  const int prog = load_trivial_program(kInsnMoveR0, {.flags = sys::kBpfFSleepable});
  if (prog >= 0) ::close(prog);
  if (prog >= 0) return state(row, Answer::yes, "a sleepable program loads");
  if (prog == -EINVAL) return needs(row, "EINVAL for a sleepable program");
  return unsure(row, "BPF_PROG_LOAD", prog);
}

/// The programs that may wait were the last ones that were refused such maps.
FeatureState probe_growing_hash(const FeatureRow& row) {
  sys::MapCreate of;
  of.map_type = sys::kBpfMapTypeHash;
  of.key_size = of.value_size = sizeof(std::uint64_t);
  of.max_entries = 1;
  of.map_flags = sys::kBpfFNoPrealloc;
  const int map = sys::syscalls().bpf(sys::kBpfMapCreateCmd, &of, sizeof(of));
  if (map < 0) return unsure(row, "BPF_MAP_CREATE", map);
  const sys::UniqueFd owner(map);
  constexpr std::uint64_t insn_map_to_r1 = 0x1118;  // r1 = the map whose descriptor is the upper half; two instructions
  const std::array code{insn_map_to_r1 | static_cast<std::uint64_t>(map) << 32, std::uint64_t{}, kInsnMoveR0,
                        kInsnExit};
  const int prog = load_program(code, {.flags = sys::kBpfFSleepable});
  if (prog >= 0) ::close(prog);
  if (prog >= 0) return state(row, Answer::yes, "a sleepable program with such a map loads");
  if (prog == -EINVAL) return needs(row, "EINVAL for a sleepable program with such a map");
  return unsure(row, "BPF_PROG_LOAD", prog);
}

FeatureState probe_ref_ctr(const FeatureRow& row) {
  struct stat st {};
  if (::stat("/sys/bus/event_source/devices/uprobe/format/ref_ctr_offset", &st) == 0)
    return state(row, Answer::yes, "the uprobe event source has ref_ctr_offset");
  if (::stat("/sys/bus/event_source/devices/uprobe", &st) == 0)
    return needs(row, "the uprobe event source has no ref_ctr_offset");
  return state(row, Answer::unknown, "/sys/bus/event_source/devices/uprobe is not there: is /sys mounted?");
}

/// uprobe(2) from outside a trampoline: ENXIO in the nop5 era, EPROTO since nop10 (7.2), ENOSYS before both.
FeatureState probe_nop(const FeatureRow& row, int telling_errno, const char* name) {
  const int error = sys::syscalls().uprobe();
  if (error == -telling_errno) return state(row, Answer::yes, fmt::format("{} from uprobe(2)", name));
  if (error == -ENOSYS) return state(row, Answer::no, "no uprobe(2)");
  if (error == -ENXIO || error == -EPROTO) return state(row, Answer::no, "uprobe(2) of the other kind");
  return unsure(row, "uprobe(2)", error);
}

FeatureState probe_kernel_btf(const FeatureRow& row) {
  static constexpr const char* path = "/sys/kernel/btf/vmlinux";
  if (::access(path, R_OK) == 0) return state(row, Answer::yes, path);
  if (errno != ENOENT) return unsure(row, path, -errno);
  struct stat st {};
  if (::stat("/sys/kernel", &st) != 0) return state(row, Answer::unknown, "/sys/kernel is not there: is /sys mounted?");
  return state(row, Answer::no, fmt::format("no {}; needs CONFIG_DEBUG_INFO_BTF", path));
}

}  // namespace usdt::features
