// SPDX-License-Identifier: BSD-2-Clause
#include "features/trivial_program.hpp"

#include <array>

#include "sys/syscalls.hpp"
#include "sys/uapi.hpp"

namespace usdt::features {

int load_trivial_program(std::uint64_t first, const TrivialProgram& as) {
  const std::array<std::uint64_t, 3> code{first, insn_move_r0, 0x0000000000000095 /* exit */};
  static constexpr char license[] = "Dual BSD/GPL";
  sys::ProgLoad attr;
  attr.insns = reinterpret_cast<std::uintptr_t>(code.data());
  attr.insn_cnt = code.size();
  attr.license = reinterpret_cast<std::uintptr_t>(license);
  attr.prog_type = as.type;
  attr.expected_attach_type = as.attach_type;
  attr.prog_flags = as.flags;
  attr.attach_btf_id = as.btf_id;
  return sys::syscalls().bpf(sys::bpf_prog_load_cmd, &attr, sizeof(attr));
}

}  // namespace usdt::features
