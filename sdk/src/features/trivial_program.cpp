// SPDX-License-Identifier: BSD-2-Clause
#include "features/trivial_program.hpp"

#include <linux/perf_event.h>

#include <array>

#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"

namespace usdt::features {

int load_trivial_program(std::uint64_t first, const TrivialProgram& as) {
  return load_program(std::array{first, kInsnMoveR0, kInsnExit}, as);
}

int load_program(std::span<const std::uint64_t> code, const TrivialProgram& as) {
  static constexpr char license[] = "Dual BSD/GPL";
  sys::ProgLoad attr;
  attr.insns = reinterpret_cast<std::uintptr_t>(code.data());
  attr.insn_cnt = static_cast<std::uint32_t>(code.size());
  attr.license = reinterpret_cast<std::uintptr_t>(license);
  attr.prog_type = as.type;
  attr.expected_attach_type = as.attach_type;
  attr.prog_flags = as.flags;
  attr.attach_btf_id = as.btf_id;
  return sys::syscalls().bpf(sys::kBpfProgLoadCmd, &attr, sizeof(attr));
}

int link_uprobe(int program, const FilePlace& place, pid_t pid) {
  sys::LinkCreateUprobeMulti attr;
  attr.prog_fd = static_cast<std::uint32_t>(program);
  attr.path = reinterpret_cast<std::uintptr_t>(place.path.c_str());
  attr.offsets = reinterpret_cast<std::uintptr_t>(&place.offset);
  attr.cnt = 1;
  attr.pid = static_cast<std::uint32_t>(pid);
  return sys::syscalls().bpf(sys::kBpfLinkCreateCmd, &attr, sizeof(attr));
}

int open_uprobe_event(std::uint32_t type, const FilePlace& place, pid_t pid) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = type;
  attr.config1 = reinterpret_cast<std::uintptr_t>(place.path.c_str());
  attr.config2 = place.offset;
  return sys::syscalls().perf_event_open(&attr, pid, -1, -1, 0);
}

}  // namespace usdt::features
