// SPDX-License-Identifier: BSD-2-Clause
// Kernel interfaces newer than the distribution's headers, declared by us with the kernel that brought them.
#pragma once

#include <cstdint>

namespace usdt::sys {

// bpf(2) commands, program and attach types: include/uapi/linux/bpf.h.
inline constexpr int bpf_prog_load_cmd = 5;
inline constexpr int bpf_obj_pin_cmd = 6;
inline constexpr int bpf_obj_get_cmd = 7;
inline constexpr int bpf_obj_get_info_by_fd_cmd = 15;
inline constexpr int bpf_link_create_cmd = 28;  // 5.7
inline constexpr std::uint32_t bpf_prog_type_kprobe = 2;
inline constexpr std::uint32_t bpf_attach_perf_event = 41;          // 5.15
inline constexpr std::uint32_t bpf_attach_trace_uprobe_multi = 48;  // 6.6, commit 89ae89f53d20

/// union bpf_attr's link_create with the uprobe_multi member (6.6, commit 89ae89f53d20).
struct LinkCreateUprobeMulti {
  std::uint32_t prog_fd = 0;
  std::uint32_t target_fd = 0;
  std::uint32_t attach_type = bpf_attach_trace_uprobe_multi;
  std::uint32_t link_flags = 0;
  std::uint64_t path = 0;
  std::uint64_t offsets = 0;
  std::uint64_t ref_ctr_offsets = 0;
  std::uint64_t cookies = 0;
  std::uint32_t cnt = 0;
  std::uint32_t flags = 0;
  std::uint32_t pid = 0;
  std::uint32_t path_fd = 0;  // 7.2; must be 0 without BPF_F_UPROBE_MULTI_PATH_FD
};
static_assert(sizeof(LinkCreateUprobeMulti) == 64);

/// union bpf_attr's link_create with the perf_event member (5.15, commit b89fbfbb854c).
struct LinkCreatePerfEvent {
  std::uint32_t prog_fd = 0;
  std::uint32_t target_fd = 0;
  std::uint32_t attach_type = bpf_attach_perf_event;
  std::uint32_t link_flags = 0;
  std::uint64_t bpf_cookie = 0;
};
static_assert(sizeof(LinkCreatePerfEvent) == 24);

/// union bpf_attr for BPF_OBJ_PIN and BPF_OBJ_GET (4.4).
struct ObjectPath {
  std::uint64_t path = 0;
  std::uint32_t bpf_fd = 0;
  std::uint32_t file_flags = 0;
};
static_assert(sizeof(ObjectPath) == 16);

/// union bpf_attr for BPF_OBJ_GET_INFO_BY_FD (4.13).
struct ObjectInfo {
  std::uint32_t bpf_fd = 0;
  std::uint32_t info_len = 0;
  std::uint64_t info = 0;
};
static_assert(sizeof(ObjectInfo) == 16);

inline constexpr std::uint32_t bpf_link_type_uprobe_multi = 12;  // 6.6

/// The start of struct bpf_link_info, with its uprobe_multi member (6.8, commit e56fdbfb06e2).
struct LinkInfo {
  std::uint32_t type = 0;
  std::uint32_t id = 0;
  std::uint32_t prog_id = 0;
  std::uint32_t padding = 0;
  std::uint64_t uprobe_path = 0;
  std::uint64_t uprobe_offsets = 0;
  std::uint64_t uprobe_ref_ctr_offsets = 0;
  std::uint64_t uprobe_cookies = 0;
  std::uint32_t uprobe_path_size = 0;
  std::uint32_t uprobe_count = 0;
  std::uint32_t uprobe_flags = 0;
  std::uint32_t uprobe_pid = 0;
};
static_assert(sizeof(LinkInfo) == 64);

/// The part of union bpf_attr's BPF_PROG_LOAD that a probe program needs.
struct ProgLoad {
  std::uint32_t prog_type = bpf_prog_type_kprobe;
  std::uint32_t insn_cnt = 0;
  std::uint64_t insns = 0;
  std::uint64_t license = 0;
  std::uint32_t log_level = 0;
  std::uint32_t log_size = 0;
  std::uint64_t log_buf = 0;
  std::uint32_t kern_version = 0;
  std::uint32_t prog_flags = 0;
  char prog_name[16] = {};
  std::uint32_t prog_ifindex = 0;
  std::uint32_t expected_attach_type = 0;
};
static_assert(sizeof(ProgLoad) == 72);

/// x86-64 syscall number of uprobe (6.18, "uprobes/x86: Add uprobe syscall to speed up uprobe").
inline constexpr long nr_uprobe = 336;

/// The kernel's ENOTSUPP, which is not in errno.h.
inline constexpr int enotsupp = 524;

}  // namespace usdt::sys
