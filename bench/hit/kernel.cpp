// SPDX-License-Identifier: BSD-2-Clause
#include "kernel.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <array>
#include <cerrno>

#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"

namespace usdt::bench {

Result<RunStats> run_stats(int program_fd) {
  bpf_prog_info info{};
  std::uint32_t size = sizeof(info);
  if (bpf_obj_get_info_by_fd(program_fd, &info, &size) != 0)
    return fail(os_failure(ErrorKind::io, "read a program's statistics", errno));
  return RunStats{info.run_time_ns, info.run_cnt};
}

Result<sys::UniqueFd> enable_stats() {
  sys::UniqueFd fd(bpf_enable_stats(BPF_STATS_RUN_TIME));
  if (!fd) return fail(os_failure(ErrorKind::io, "switch on statistics of BPF programs", errno));
  return fd;
}

Result<sys::UniqueFd> load_empty_program() {
  const std::array<bpf_insn, 2> code = {bpf_insn{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0},
                                        bpf_insn{BPF_JMP | BPF_EXIT, 0, 0, 0, 0}};
  LIBBPF_OPTS(bpf_prog_load_opts, options,
              .expected_attach_type = static_cast<bpf_attach_type>(sys::kBpfAttachTraceUprobeMulti));
  sys::UniqueFd fd(bpf_prog_load(BPF_PROG_TYPE_KPROBE, "hit_bare", "GPL", code.data(), code.size(), &options));
  if (!fd) return fail(os_failure(ErrorKind::io, "load an empty program", errno));
  return fd;
}

Result<sys::UniqueFd> create_link(int program_fd, const std::filesystem::path& path,
                                  const std::vector<std::uint64_t>& offsets) {
  sys::LinkCreateUprobeMulti attr;
  attr.prog_fd = static_cast<std::uint32_t>(program_fd);
  attr.path = reinterpret_cast<std::uintptr_t>(path.c_str());
  attr.offsets = reinterpret_cast<std::uintptr_t>(offsets.data());
  attr.cnt = static_cast<std::uint32_t>(offsets.size());
  const int fd = sys::syscalls().bpf(sys::kBpfLinkCreateCmd, &attr, sizeof(attr));
  if (fd < 0) return fail(os_failure(ErrorKind::io, "BPF_LINK_CREATE", -fd));
  return sys::UniqueFd(fd);
}

Result<ProbeFile> find_sites(const std::filesystem::path& path, const std::string& name) {
  return find_probes({.path = path, .access = path}, {ProbePattern{.target = "", .provider = "hit", .name = name}});
}

std::filesystem::path own_file() { return std::filesystem::read_symlink("/proc/self/exe"); }

}  // namespace usdt::bench
