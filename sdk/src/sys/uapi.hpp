// SPDX-License-Identifier: BSD-2-Clause
// Kernel interfaces newer than the distribution's headers, declared by us with the kernel that brought them.
#pragma once

#include <cstdint>

namespace usdt::sys {

// bpf(2) commands, program and attach types: include/uapi/linux/bpf.h.
inline constexpr int kBpfMapCreateCmd = 0;
inline constexpr int kBpfProgLoadCmd = 5;
inline constexpr int kBpfObjPinCmd = 6;
inline constexpr int kBpfObjGetCmd = 7;
inline constexpr int kBpfProgTestRunCmd = 10;  // of BPF_PROG_TYPE_SYSCALL 5.14
inline constexpr int kBpfObjGetInfoByFdCmd = 15;
inline constexpr int kBpfLinkCreateCmd = 28;   // 5.7
inline constexpr int kBpfEnableStatsCmd = 32;  // 5.8
inline constexpr int kBpfIterCreateCmd = 33;   // 5.8
inline constexpr int kBpfTokenCreateCmd = 36;  // 6.9
inline constexpr int kBpfRawTracepointOpenCmd = 17;
inline constexpr int kBpfBtfGetFdByIdCmd = 19;
inline constexpr int kBpfBtfGetNextIdCmd = 23;
inline constexpr std::uint32_t kBpfProgTypeKprobe = 2;
inline constexpr std::uint32_t kBpfMapTypeHash = 1;
inline constexpr std::uint32_t kBpfMapTypeRingbuf = 27;         // 5.8
inline constexpr std::uint32_t kBpfFSleepable = 1u << 4;        // 5.10; of programs on sites 6.0
inline constexpr std::uint32_t kBpfProgTypeRawTracepoint = 17;  // 4.17
inline constexpr std::uint32_t kBpfProgTypeTracing = 26;        // 5.5
inline constexpr std::uint32_t kBpfProgTypeSyscall = 31;        // 5.14
inline constexpr std::uint32_t kBpfAttachTraceRawTp = 23;       // 5.5: tp_btf
inline constexpr std::uint32_t kBpfAttachTraceFentry = 24;      // 5.5, and fexit
inline constexpr std::uint32_t kBpfAttachTraceFexit = 25;
inline constexpr std::uint32_t kBpfAttachTraceIter = 28;           // 5.8; over symbols 6.0, commit 647cafa22349
inline constexpr std::uint32_t kBpfAttachTraceKprobeMulti = 42;    // 5.18, commit 0dcac2725406
inline constexpr std::uint32_t kBpfAttachTraceKprobeSession = 56;  // 6.10, commit 535a3692ba72
inline constexpr std::uint32_t kBpfAttachTraceFsession = 58;       // 7.0
inline constexpr std::uint32_t kBpfAttachTraceFentryMulti = 59;    // 7.2, and the next two
inline constexpr std::uint32_t kBpfAttachTraceFexitMulti = 60;
inline constexpr std::uint32_t kBpfAttachTraceFsessionMulti = 61;
inline constexpr std::uint32_t kBpfFKprobeMultiReturn = 1;
inline constexpr std::uint32_t kBpfAttachPerfEvent = 41;           // 5.15
inline constexpr std::uint32_t kBpfAttachTraceUprobeMulti = 48;    // 6.6, commit 89ae89f53d20
inline constexpr std::uint32_t kBpfFUprobeMultiReturn = 1;         // the same
inline constexpr std::uint32_t kBpfAttachTraceUprobeSession = 57;  // 6.13, commit d920179b3d48

/// union bpf_attr's link_create with the uprobe_multi member (6.6, commit 89ae89f53d20).
struct LinkCreateUprobeMulti {
  std::uint32_t prog_fd = 0;
  std::uint32_t target_fd = 0;
  std::uint32_t attach_type = kBpfAttachTraceUprobeMulti;
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
  std::uint32_t attach_type = kBpfAttachPerfEvent;
  std::uint32_t link_flags = 0;
  std::uint64_t bpf_cookie = 0;
};
static_assert(sizeof(LinkCreatePerfEvent) == 24);

/// The kprobe_multi member (5.18, commit 0dcac2725406). `addrs` are words of the kernel; `cookies` go with them.
struct LinkCreateKprobeMulti {
  std::uint32_t prog_fd = 0;
  std::uint32_t target_fd = 0;
  std::uint32_t attach_type = kBpfAttachTraceKprobeMulti;
  std::uint32_t link_flags = 0;
  std::uint32_t flags = 0;
  std::uint32_t cnt = 0;
  std::uint64_t syms = 0;
  std::uint64_t addrs = 0;
  std::uint64_t cookies = 0;
};
static_assert(sizeof(LinkCreateKprobeMulti) == 48);

/// The tracing member: fentry, fexit, fsession and tp_btf (5.15), its cookie from 5.19, commit 2fcc82411e74.
struct LinkCreateTracing {
  std::uint32_t prog_fd = 0;
  std::uint32_t target_fd = 0;
  std::uint32_t attach_type = kBpfAttachTraceFentry;
  std::uint32_t link_flags = 0;
  std::uint32_t target_btf_id = 0;
  std::uint32_t padding = 0;
  std::uint64_t cookie = 0;
};
static_assert(sizeof(LinkCreateTracing) == 32);

/// The tracing_multi member (7.2): ids of BTF_KIND_FUNC in the BTF the program was loaded for.
struct LinkCreateTracingMulti {
  std::uint32_t prog_fd = 0;
  std::uint32_t target_fd = 0;
  std::uint32_t attach_type = kBpfAttachTraceFentryMulti;
  std::uint32_t link_flags = 0;
  std::uint64_t ids = 0;
  std::uint64_t cookies = 0;
  std::uint32_t cnt = 0;
  std::uint32_t padding = 0;
};
static_assert(sizeof(LinkCreateTracingMulti) == 40);

/// The beginning, with which an iterator over everything makes do (5.8, commit de4e05cac46d).
struct LinkCreateIter {
  std::uint32_t prog_fd = 0;
  std::uint32_t target_fd = 0;
  std::uint32_t attach_type = kBpfAttachTraceIter;
  std::uint32_t link_flags = 0;
};
static_assert(sizeof(LinkCreateIter) == 16);

/// union bpf_attr for BPF_ITER_CREATE (5.8, commit ac51d99bf81c).
struct IterCreate {
  std::uint32_t link_fd = 0;
  std::uint32_t flags = 0;
};
static_assert(sizeof(IterCreate) == 8);

/// union bpf_attr for BPF_RAW_TRACEPOINT_OPEN (4.17), its cookie from 6.10, commit 68ca5d4eebb8. Older kernels want
/// what they do not know to be zero.
struct RawTracepointOpen {
  std::uint64_t name = 0;
  std::uint32_t prog_fd = 0;
  std::uint32_t padding = 0;
  std::uint64_t cookie = 0;
};
static_assert(sizeof(RawTracepointOpen) == 24);

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

/// A counter of 8 bytes in what BPF_OBJ_GET_INFO_BY_FD fills in, which is asked for up to there.
template <std::size_t offset>
struct CounterAt {
  std::uint8_t before[offset] = {};
  std::uint64_t count = 0;
};
/// struct bpf_prog_info's recursion_misses (5.12, commit 9ed9e9ba2337).
using RecursionMisses = CounterAt<208>;
/// struct bpf_prog_info's run_time_ns and run_cnt (5.1), which are counted while BPF_ENABLE_STATS has a descriptor.
struct ProgramRuns {
  std::uint8_t before[192] = {};
  std::uint64_t nanoseconds = 0;
  std::uint64_t runs = 0;
};
static_assert(sizeof(ProgramRuns) == 208);
/// struct bpf_link_info's kprobe_multi.missed (6.7, commit e2b2cd592adc).
using KprobeMultiMissed = CounterAt<32>;
/// The same, perf_event.kprobe.missed (6.7, commit 3acf8ace6823).
using PerfKprobeMissed = CounterAt<48>;
static_assert(sizeof(RecursionMisses) == 216 && sizeof(KprobeMultiMissed) == 40 && sizeof(PerfKprobeMissed) == 56);

/// The beginning of union bpf_attr for BPF_MAP_CREATE (3.18, flags 4.6): by default of an array with one element.
struct MapCreate {
  std::uint32_t map_type = 2;
  std::uint32_t key_size = 4;
  std::uint32_t value_size = 0;
  std::uint32_t max_entries = 1;
  std::uint32_t map_flags = 0;
  std::uint32_t inner_map_fd = 0;
  std::uint32_t numa_node = 0;
  char map_name[16] = {};  // 4.15
};
static_assert(sizeof(MapCreate) == 44);
inline constexpr std::uint32_t kBpfFNoPrealloc = 1u << 0;  // 4.6
inline constexpr std::uint32_t kBpfFMmapable = 1u << 10;   // 5.5

/// union bpf_attr for BPF_TOKEN_CREATE (6.9, commit 35f96de04127).
struct TokenCreate {
  std::uint32_t flags = 0;
  std::uint32_t bpffs_fd = 0;
};
static_assert(sizeof(TokenCreate) == 8);
inline constexpr std::uint32_t kBpfFTokenFd = 1u << 16;  // among the flags of maps and programs; the same

/// The part of union bpf_attr's BPF_PROG_LOAD that a probe program needs.
struct ProgLoad {
  std::uint32_t prog_type = kBpfProgTypeKprobe;
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
  std::uint32_t prog_btf_fd = 0;
  std::uint32_t func_info_rec_size = 0;
  std::uint64_t func_info = 0;
  std::uint32_t func_info_cnt = 0;
  std::uint32_t line_info_rec_size = 0;
  std::uint64_t line_info = 0;
  std::uint32_t line_info_cnt = 0;
  std::uint32_t attach_btf_id = 0;      // 5.5
  std::uint32_t attach_btf_obj_fd = 0;  // 5.11: of a module
  std::uint32_t padding = 0;
};
static_assert(sizeof(ProgLoad) == 120);

/// union bpf_attr for BPF_PROG_TEST_RUN, with a context from 5.10.
struct ProgTestRun {
  std::uint32_t prog_fd = 0;
  std::uint32_t retval = 0;
  std::uint32_t data_size_in = 0;
  std::uint32_t data_size_out = 0;
  std::uint64_t data_in = 0;
  std::uint64_t data_out = 0;
  std::uint32_t repeat = 0;
  std::uint32_t duration = 0;
  std::uint32_t ctx_size_in = 0;
  std::uint32_t ctx_size_out = 0;
  std::uint64_t ctx_in = 0;
  std::uint64_t ctx_out = 0;
};
static_assert(sizeof(ProgTestRun) == 64);

/// union bpf_attr for BPF_BTF_GET_NEXT_ID and BPF_BTF_GET_FD_BY_ID.
struct IdQuery {
  std::uint32_t id = 0;
  std::uint32_t next_id = 0;
  std::uint32_t open_flags = 0;
};
static_assert(sizeof(IdQuery) == 12);

/// struct bpf_btf_info (4.18; name and kernel_btf from 5.11, commit 5329722057d4).
struct BtfInfo {
  std::uint64_t btf = 0;
  std::uint32_t btf_size = 0;
  std::uint32_t id = 0;
  std::uint64_t name = 0;
  std::uint32_t name_len = 0;
  std::uint32_t kernel_btf = 0;
};
static_assert(sizeof(BtfInfo) == 32);

/// The kernel's ENOTSUPP, which is not in errno.h.
inline constexpr int kEnotsupp = 524;

}  // namespace usdt::sys
