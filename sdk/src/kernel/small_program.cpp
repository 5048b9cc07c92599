// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/small_program.hpp"

#include <algorithm>
#include <cstring>

#include "sys/syscalls.hpp"

namespace usdt::kernel {

SmallProgram& SmallProgram::add(Op op, unsigned to, unsigned from, int offset, std::uint32_t immediate) {
  code_.push_back(std::uint64_t{immediate} << 32 |
                  std::uint64_t{static_cast<std::uint16_t>(static_cast<std::int16_t>(offset))} << 16 |
                  std::uint64_t{from} << 12 | std::uint64_t{to} << 8 | static_cast<std::uint8_t>(op));
  return *this;
}

SmallProgram& SmallProgram::wide(unsigned to, std::uint64_t value) {
  add(Op::wide, to, 0, 0, static_cast<std::uint32_t>(value));
  code_.push_back(value >> 32 << 32);
  return *this;
}

SmallProgram& SmallProgram::map_value(unsigned to, const sys::UniqueFd& map) {
  constexpr unsigned pseudo_map_value = 2;  // 5.2
  add(Op::wide, to, pseudo_map_value, 0, static_cast<std::uint32_t>(map.get()));
  code_.push_back(0);
  return *this;
}

SmallProgram& SmallProgram::put(std::span<const char> bytes, int offset) {
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at));
    wide(2, word).add(Op::store_64, 10, 2, offset + static_cast<int>(at));
  }
  return *this;
}

void SmallProgram::land_here(std::size_t at) {
  const auto distance = static_cast<std::uint16_t>(code_.size() - at - 1);
  code_[at] = (code_[at] & ~(std::uint64_t{0xffff} << 16)) | std::uint64_t{distance} << 16;
}

sys::UniqueFd SmallProgram::load(sys::ProgLoad as) const {
  static constexpr char license[] = "Dual BSD/GPL";
  as.insns = reinterpret_cast<std::uintptr_t>(code_.data());
  as.insn_cnt = static_cast<std::uint32_t>(code_.size());
  as.license = reinterpret_cast<std::uintptr_t>(license);
  return sys::UniqueFd(sys::syscalls().bpf(sys::kBpfProgLoadCmd, &as, sizeof(as)));
}

bool run_program(const sys::UniqueFd& program, std::span<std::byte> context) {
  sys::ProgTestRun run;
  run.prog_fd = static_cast<std::uint32_t>(program.get());
  run.ctx_size_in = static_cast<std::uint32_t>(context.size());
  run.ctx_in = reinterpret_cast<std::uintptr_t>(context.data());
  return sys::syscalls().bpf(sys::kBpfProgTestRunCmd, &run, sizeof(run)) == 0 && run.retval == 0;
}

}  // namespace usdt::kernel
