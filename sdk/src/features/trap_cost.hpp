// SPDX-License-Identifier: BSD-2-Clause
// Cost of a uprobe's hit to a program on this kernel and machine, measured on a child process.
#pragma once

#include <cstdint>

#include "features/measured_code.hpp"
#include "sys/unique_fd.hpp"
#include "usdt/result.hpp"

namespace usdt::features {

/// The kernel's clocks around BPF programs, of all programs while it is held (BPF_ENABLE_STATS, Linux 5.8; wants
/// CAP_SYS_ADMIN). They cost each run some 50 ns.
class ProgramClocks {
 public:
  ProgramClocks();
  [[nodiscard]] bool run() const noexcept { return static_cast<bool>(fd_); }

 private:
  sys::UniqueFd fd_;
};

/// How long a program ran; nothing where the kernel does not tell, or no ProgramClocks are held.
struct ProgramTime {
  std::uint64_t nanoseconds = 0;
  std::uint64_t runs = 0;
};
[[nodiscard]] Result<ProgramTime> program_time(int program_fd);

/// Processor time of a hit, ns, without what the program takes that runs then: by a perf event, or by a link of
/// uprobe_multi. Takes some 100 ms, most of it the kernel's waiting when the probe is removed. Errors: not_supported
/// (no such code for this machine), io, no_permission.
[[nodiscard]] Result<double> trap_cost(TrappedInstruction instruction, bool on_perf_event);

}  // namespace usdt::features
